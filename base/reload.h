#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/log_setup.h"
#include "base/metrics.h"
#include "base/options.h"

namespace tributary {

// Applies changed options while the program runs, and writes one log line about the changes that need a restart. A
// reload that fails logs one error and changes nothing. Values are never logged. Use it on one thread.
class Reloader {
 public:
  // The result of `reload`: all option values after the reload.
  struct Reloaded {
    std::vector<OptionValue> values;
    LogLevel log_level = LogLevel::kInfo;
    std::vector<std::string> refused;  // reloadable options whose new value needs a restart
  };
  struct Options {
    std::string_view metric;            // "tributary_collector_reloads_total"
    std::vector<OptionValue> in_force;  // at start
    // Reads all options again and applies the reloadable ones: all of them, or none with an error. Does not apply the
    // log level.
    std::function<absl::StatusOr<Reloaded>()> reload;
  };
  Reloader(Options options, Metrics& metrics);

  void Reload();

 private:
  // Stores the current values. Returns the names of the options that were applied, and of those that need a restart.
  struct Changes {
    std::vector<std::string> taken, need_restart;
  };
  Changes Take(const Reloaded& reloaded);

  const std::function<absl::StatusOr<Reloaded>()> reload_;
  std::vector<OptionValue> in_force_;
  Counter &ok_, &failed_;
};

}  // namespace tributary
