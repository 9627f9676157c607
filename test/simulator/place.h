#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>

#include "profile/model.h"

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

}  // namespace tributary::sim
