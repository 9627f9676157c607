#include "base/reload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace tributary {
namespace {

constexpr std::string_view kHelp = "Reloads of the options after SIGHUP, by result";

}  // namespace

Reloader::Reloader(Options options, Metrics& metrics)
    : reload_(std::move(options.reload)),
      in_force_(std::move(options.in_force)),
      ok_(metrics.AddCounter(options.metric, kHelp, {{"result", "ok"}})),
      failed_(metrics.AddCounter(options.metric, kHelp, {{"result", "failed"}})) {}

Reloader::Changes Reloader::Take(const Reloaded& reloaded) {
  Changes changes;
  for (const OptionValue& now : reloaded.values) {
    auto before = std::find_if(in_force_.begin(), in_force_.end(),
                               [&](const OptionValue& value) { return value.name == now.name; });
    if (before == in_force_.end() || before->text == now.text) continue;
    const bool refused =
        std::find(reloaded.refused.begin(), reloaded.refused.end(), now.name) != reloaded.refused.end();
    if (now.reloadable && !refused) {
      before->text = now.text;
      changes.taken.push_back(now.name);
    } else {
      changes.need_restart.push_back(now.name);
    }
  }
  return changes;
}

void Reloader::Reload() {
  absl::StatusOr<Reloaded> reloaded = reload_();
  if (!reloaded.ok()) {
    failed_.Add();
    LogError("reload failed, all options keep their values cause=\"{}\"", Message(reloaded.status()));
    return;
  }
  ok_.Add();
  // The log line appears if the old or the new level shows it.
  if (!LogEnabled(LogLevel::kInfo)) SetLogLevel(reloaded->log_level);
  const Changes changes = Take(*reloaded);
  LogInfo("options reloaded changed={}",
          changes.taken.empty() ? "none" : fmt::format("{}", fmt::join(changes.taken, ",")));
  if (!changes.need_restart.empty()) {
    LogWarning("some changed options take effect only after a restart options={}",
               fmt::join(changes.need_restart, ","));
  }
  SetLogLevel(reloaded->log_level);
}

}  // namespace tributary
