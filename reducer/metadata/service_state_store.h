#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "reducer/metadata/service_version.h"

namespace tributary {

// Stores the state that ServiceTracker keeps for each program of a service, so that it survives a restart. Only one
// thread at a time may use the store. Calls do not wait until data are on disk. Error messages name the object that
// could not be read or written.
class ServiceStateStore {
 public:
  virtual ~ServiceStateStore() = default;

  virtual absl::Status Load(absl::FunctionRef<void(const ServiceProgram&, std::string_view state)> visit) = 0;
  struct Row {
    ServiceProgram program;
    std::optional<std::string> state;  // nullopt: the program was forgotten
  };
  virtual absl::Status Save(std::span<const Row> rows) = 0;  // in one transaction
};

}  // namespace tributary
