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

// Applies changed options while the program runs. Logs the names of changed options, in one line for the applied ones
// and one for those that need a restart. A reload that fails changes nothing and logs an error. The logged lines
// contain no values of options, except an invalid value, which the error may quote. Use it on one thread.
class Reloader {
 public:
  // The result of `reload`, with the new values of all options.
  struct Reloaded {
    std::vector<OptionValue> values;
    LogLevel log_level = LogLevel::kInfo;
    std::vector<std::string> refused;  // reloadable options whose new value needs a restart
  };
  struct Options {
    std::string_view metric;            // "tributary_collector_reloads_total"
    std::vector<OptionValue> in_force;  // at start
    // Must read all options again and apply the reloadable ones. If it returns an error, it must have applied none. It
    // must not apply the log level: Reloader applies it.
    std::function<absl::StatusOr<Reloaded>()> reload;
  };
  Reloader(Options options, Metrics& metrics);

  void Reload();

 private:
  // Stores the new values of applied options in in_force_. Returns the names of changed options: those that were
  // applied, and those that need a restart.
  struct Changes {
    std::vector<std::string> taken, need_restart;
  };
  Changes Take(const Reloaded& reloaded);

  const std::function<absl::StatusOr<Reloaded>()> reload_;
  std::vector<OptionValue> in_force_;
  Counter &ok_, &failed_;
};

}  // namespace tributary
