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

// All data that a reducer keeps over restarts, except symbols. The reducer does not start without the store of samples.
// Each of the other three stores may be an error: the component that needs the store then reports the error and works
// in memory only.
struct Stores {
  std::unique_ptr<store::Store> samples;
  absl::StatusOr<std::unique_ptr<EntityStore>> entities;
  absl::StatusOr<std::unique_ptr<RolloutStore>> rollouts;
  absl::StatusOr<std::unique_ptr<ServiceStateStore>> service_states;
};

// Store URLs are SCHEME:PLACE. The table of schemes in stores.cc is the only place that names the kinds of stores.
std::string StoreUrlForms();                             // "sqlite:DIR", for help and messages
std::string DefaultStoreUrl(std::string_view data_dir);  // a store in that directory
absl::Status CheckStoreUrl(std::string_view url);        // InvalidArgument with a message that shows valid URLs

// Opens the stores that the URL names. The caller must not have started threads: a store may set environment variables.
// `clock` and `metrics` must outlive the stores.
//
// InvalidArgument: as CheckStoreUrl. AlreadyExists: another reducer uses the store. FailedPrecondition: a newer release
// wrote one of the stores. PermissionDenied, ResourceExhausted: as the system reports them.
absl::StatusOr<Stores> OpenStores(std::string_view url, const store::StoreOptions& options, const Clock& clock,
                                  Metrics& metrics);

}  // namespace tributary
