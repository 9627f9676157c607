#include "profile/named_code.h"

#include "profile/frame_kinds.h"

namespace tributary {

std::vector<bool> FindNamedCode(const Definitions& definitions, uint32_t first) {
  std::vector<bool> is_named(definitions.executables.size()), has_code(definitions.executables.size());
  auto mark = [&](ExecutableRef executable, std::vector<bool>& marks) {
    const uint32_t index = executable.value - first;  // wraps around for executables of earlier batches
    if (index < marks.size()) marks[index] = true;
  };
  for (const Frame& frame : definitions.frames) {
    mark(frame.executable, RowOf(frame.kind).has_address ? has_code : is_named);
  }
  for (const Process& process : definitions.processes) mark(process.executable, has_code);
  for (size_t i = 0; i < is_named.size(); ++i) is_named[i] = is_named[i] && !has_code[i];
  return is_named;
}

}  // namespace tributary
