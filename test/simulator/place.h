#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>

#include "profile/model.h"
#include "profile/process_event.h"

namespace tributary::sim {

// Returns the process, thread and stack of a sample as text. `Dictionary` is the dictionary type of the collector or of
// the reducer.
template <typename Dictionary>
std::string PlaceOf(const Dictionary& dictionary, const Sample& sample) {
  const Thread& thread = dictionary.thread(sample.thread);
  const Process& process = dictionary.process(thread.process);
  std::string out =
      fmt::format("{}/{}/{} {} {} {}/{}", process.key.pid.value, process.key.start_time_ns, process.key.exec_sequence,
                  std::string(dictionary.string(process.comm)), std::string(dictionary.string(process.executable_path)),
                  thread.tid.value, std::string(dictionary.string(thread.name)));
  std::string stack;
  for (NodeRef at = sample.node; at.value != 0; at = dictionary.node(at).parent) {
    const Frame& frame = dictionary.frame(dictionary.node(at).frame);
    const Executable& executable = dictionary.executable(frame.executable);
    stack = fmt::format(";{}{}:{}:{:x}", static_cast<int>(frame.kind), frame.is_caller ? "r" : "",
                        std::string(dictionary.string(executable.path)), frame.address) +
            stack;
  }
  return out + stack;
}

// Returns all fields of an event, with its texts.
template <typename Dictionary>
std::string TextOf(const Dictionary& dictionary, const ProcessEvent& event) {
  std::string out = fmt::format("{} {} {}/{} uid={}", event.time.value, ProcessEventKindName(event.kind),
                                event.pid.value, event.parent.value, event.uid);
  for (const StringRef ref : {event.name, event.executable_path, event.container_id, event.cgroup_path}) {
    out += " " + std::string(dictionary.string(ref));
  }
  const ProcessEnd& end = event.end;
  return out + fmt::format(" {} of {} start={} exit={} signal={} {}{} run={} user={} system={} peak={}", event.events,
                           event.processes, event.start_time_ns, end.exit_code, end.signal,
                           end.core_dumped ? "core " : "", end.oom_killed ? "oom " : "", end.run_ns, end.user_ns,
                           end.system_ns, end.peak_rss_bytes);
}

}  // namespace tributary::sim
