#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "reducer/metadata/service_state_store.h"
#include "reducer/sqlite/sqlite.h"

namespace tributary {

// Stores in rollouts.db the state that ServiceTracker keeps for each program of a service. Methods return the errors of
// sqlite.h.
class SqliteServiceStateStore final : public ServiceStateStore {
 public:
  static absl::StatusOr<std::unique_ptr<ServiceStateStore>> Open(const std::string& directory);

  absl::Status Load(absl::FunctionRef<void(const ServiceProgram&, std::string_view state)> visit) override;
  absl::Status Save(std::span<const Row> rows) override;

 private:
  explicit SqliteServiceStateStore(store::Database database) : database_(std::move(database)) {}

  store::Database database_;
  store::Statement put_, remove_;  // of database_
};

}  // namespace tributary
