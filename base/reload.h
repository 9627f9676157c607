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

// Puts changed options in force while the program runs, and says in one log line which changes wait for a restart. A
// reload that fails is one error in the log, and everything stays as it was. Values are never logged. On one thread.
class Reloader {
 public:
  // What the options say now, once `reload` has put the reloadable ones in force.
  struct Reloaded {
    std::vector<OptionValue> values;
    LogLevel log_level = LogLevel::kInfo;
    std::vector<std::string> refused;  // reloadable options whose new value only a restart can take
  };
  struct Options {
    std::string_view metric;            // "tributary_collector_reloads_total"
    std::vector<OptionValue> in_force;  // at start
    // Reads all options anew and puts those that are reloadable in force: all of them, or none and an error. The log
    // level is not its concern.
    std::function<absl::StatusOr<Reloaded>()> reload;
  };
  Reloader(Options options, Metrics& metrics);

  void Reload();

 private:
  // Remembers the values that are in force now; returns the names of the options that did, and that did not change.
  struct Changes {
    std::vector<std::string> taken, need_restart;
  };
  Changes Take(const Reloaded& reloaded);

  const std::function<absl::StatusOr<Reloaded>()> reload_;
  std::vector<OptionValue> in_force_;
  Counter &ok_, &failed_;
};

}  // namespace tributary
