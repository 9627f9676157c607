#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/metadata/service_version.h"
#include "reducer/store/sqlite.h"

namespace tributary {

// What ServiceTracker knows, in rollouts.db. One thread. Errors: the database's.
class ServiceStateDb {
 public:
  static absl::StatusOr<ServiceStateDb> Open(const std::string& path);

  absl::Status Load(absl::FunctionRef<void(const ServiceProgram&, std::string_view state)> visit);
  struct Row {
    ServiceProgram program;
    std::optional<std::string> state;  // none: it is forgotten
  };
  absl::Status Save(std::span<const Row> rows);  // in one transaction

 private:
  explicit ServiceStateDb(store::Database database) : database_(std::move(database)) {}

  store::Database database_;
  store::Statement put_, remove_;  // of it
};

}  // namespace tributary
