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
#include "reducer/store/damage_list.h"
#include "reducer/store/finding.h"
#include "reducer/store/store.h"

namespace tributary {

// The stores for all data that a reducer keeps over restarts, except symbols. `samples` is always open. Each of the
// other three may be an error instead of a store: the component that needs the store then reports the error and works
// in memory only.
struct Stores {
  std::unique_ptr<store::Store> samples;
  absl::StatusOr<std::unique_ptr<EntityStore>> entities;
  absl::StatusOr<std::unique_ptr<RolloutStore>> rollouts;
  absl::StatusOr<std::unique_ptr<ServiceStateStore>> service_states;
  store::DamageSource* damage = nullptr;  // of `samples`; nullptr: this kind of store lists no damage
};

// A store URL has the form SCHEME:PLACE, where the scheme is a kind of store. The table in stores.cc is the only code
// that lists the schemes.
std::string StoreUrlForms();                             // "sqlite:DIR", for help and messages
std::string DefaultStoreUrl(std::string_view data_dir);  // a store in that directory
absl::Status CheckStoreUrl(std::string_view url);        // InvalidArgument with a message that shows valid URLs

// Opens the stores that `url` names. No other thread may be running, because OpenStores may set environment variables.
// `clock` and `metrics` must outlive the stores.
//
// InvalidArgument: CheckStoreUrl refuses `url`. AlreadyExists: another reducer uses the store. FailedPrecondition: a
// newer release wrote one of the stores. PermissionDenied: a file may not be read or written. ResourceExhausted: the
// disk is full, or no memory or file descriptors are left. DataLoss: a file of the sample store is damaged.
absl::StatusOr<Stores> OpenStores(std::string_view url, const store::StoreOptions& options, const Clock& clock,
                                  Metrics& metrics);

// Checks the stores that `url` names, and changes nothing. A reducer may use them meanwhile. Passes the results to
// `visit`. Errors: InvalidArgument as above, NotFound: there is no store, PermissionDenied: a file may not be read.
absl::Status CheckStores(std::string_view url, const store::FindingVisitor& visit);

}  // namespace tributary
