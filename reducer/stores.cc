#include "reducer/stores.h"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "base/status.h"
#include "reducer/sqlite/data_check.h"
#include "reducer/sqlite/sqlite_entity_store.h"
#include "reducer/sqlite/sqlite_rollout_store.h"
#include "reducer/sqlite/sqlite_service_state_store.h"
#include "reducer/sqlite/sqlite_store.h"

namespace tributary {
namespace {

absl::Status CheckDirectory(std::string_view directory) {
  if (!directory.empty()) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "sqlite: needs a directory, as in sqlite:/var/lib/tributary");
}

absl::StatusOr<Stores> OpenSqlite(std::string_view place, const store::StoreOptions& options, const Clock& clock,
                                  Metrics& metrics) {
  const std::string directory(place);
  // For large sorts of SQLite. All other directories may be read-only, as in an image with a read-only root file
  // system.
  setenv("SQLITE_TMPDIR", directory.c_str(), /*overwrite=*/0);
  // This comes first: it creates the directory and holds its lock.
  ASSIGN_OR_RETURN(std::unique_ptr<store::SqliteStore> samples,
                   store::SqliteStore::Open(directory, options, clock, metrics));
  store::DamageSource* const damage = samples.get();
  Stores stores{.samples = std::move(samples),
                .entities = SqliteEntityStore::Open(directory),
                .rollouts = SqliteRolloutStore::Open(directory),
                .service_states = SqliteServiceStateStore::Open(directory),
                .damage = damage};
  for (const absl::Status& status :
       {stores.entities.status(), stores.rollouts.status(), stores.service_states.status()}) {
    if (absl::IsFailedPrecondition(status)) return status;
  }
  return stores;
}

absl::Status VerifySqlite(std::string_view place, const store::FindingVisitor& visit) {
  return store::CheckSqliteDirectory(std::string(place), visit);
}

struct Scheme {
  std::string_view name;
  std::string_view form;  // of the whole URL
  absl::Status (*check)(std::string_view place);
  absl::StatusOr<Stores> (*open)(std::string_view place, const store::StoreOptions& options, const Clock& clock,
                                 Metrics& metrics);
  absl::Status (*verify)(std::string_view place, const store::FindingVisitor& visit);
};
constexpr Scheme kSchemes[] = {{"sqlite", "sqlite:DIR", CheckDirectory, OpenSqlite, VerifySqlite}};

struct Parsed {
  const Scheme* scheme;
  std::string_view place;
};

absl::StatusOr<Parsed> Parse(std::string_view url) {
  const size_t colon = url.find(':');
  for (const Scheme& scheme : kSchemes) {
    if (colon == std::string_view::npos || url.substr(0, colon) != scheme.name) continue;
    const std::string_view place = url.substr(colon + 1);
    RETURN_IF_ERROR(scheme.check(place));
    return Parsed{&scheme, place};
  }
  return Error(absl::StatusCode::kInvalidArgument,
               fmt::format("\"{}\" is not the URL of a store: give {}", url, StoreUrlForms()));
}

}  // namespace

std::string StoreUrlForms() {
  std::string forms;
  for (const Scheme& scheme : kSchemes) forms += fmt::format("{}{}", forms.empty() ? "" : " or ", scheme.form);
  return forms;
}

std::string DefaultStoreUrl(std::string_view data_dir) { return fmt::format("sqlite:{}", data_dir); }

absl::Status CheckStoreUrl(std::string_view url) { return Parse(url).status(); }

absl::StatusOr<Stores> OpenStores(std::string_view url, const store::StoreOptions& options, const Clock& clock,
                                  Metrics& metrics) {
  ASSIGN_OR_RETURN(const Parsed parsed, Parse(url));
  return parsed.scheme->open(parsed.place, options, clock, metrics);
}

absl::Status CheckStores(std::string_view url, const store::FindingVisitor& visit) {
  ASSIGN_OR_RETURN(const Parsed parsed, Parse(url));
  return parsed.scheme->verify(parsed.place, visit);
}

}  // namespace tributary
