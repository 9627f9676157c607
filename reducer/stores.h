#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "reducer/metadata/entity_store.h"
#include "reducer/metadata/rollout_store.h"
#include "reducer/metadata/service_state_store.h"
#include "reducer/store/store.h"

namespace tributary {

// All that a reducer keeps over restarts, apart from symbols. Without the store of samples it does not start. Each of
// the other three may be an error: its user reports it and works in memory alone.
struct Stores {
  std::unique_ptr<store::Store> samples;
  absl::StatusOr<std::unique_ptr<EntityStore>> entities;
  absl::StatusOr<std::unique_ptr<RolloutStore>> rollouts;
  absl::StatusOr<std::unique_ptr<ServiceStateStore>> service_states;
};

// Store URLs are SCHEME:PLACE. The table of schemes in stores.cc is the only place that names the kinds of stores.
std::string StoreUrlForms();                             // "sqlite:DIR", for help and messages
std::string DefaultStoreUrl(std::string_view data_dir);  // a store in that directory
absl::Status CheckStoreUrl(std::string_view url);        // InvalidArgument: a sentence that says what is right

// Opens the stores that the URL names. The caller must not have started threads: a store may set environment variables.
// `clock` and `metrics` outlive the stores.
//
// InvalidArgument: as CheckStoreUrl. AlreadyExists: another reducer uses the store. FailedPrecondition: a newer release
// wrote one of them. PermissionDenied, ResourceExhausted: what the system says.
absl::StatusOr<Stores> OpenStores(std::string_view url, const store::StoreOptions& options, const Clock& clock,
                                  Metrics& metrics);

}  // namespace tributary
