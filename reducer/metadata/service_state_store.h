#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "reducer/metadata/service_version.h"

namespace tributary {

// Keeps what ServiceTracker knows over restarts. One thread. No call waits for a disk. Messages of errors name what
// could not be read or written.
class ServiceStateStore {
 public:
  virtual ~ServiceStateStore() = default;

  virtual absl::Status Load(absl::FunctionRef<void(const ServiceProgram&, std::string_view state)> visit) = 0;
  struct Row {
    ServiceProgram program;
    std::optional<std::string> state;  // none: it is forgotten
  };
  virtual absl::Status Save(std::span<const Row> rows) = 0;  // in one transaction
};

}  // namespace tributary
