#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "kernel-collector/processes/maps_parser.h"
#include "kernel-collector/processes/proc_cgroup.h"
#include "kernel-collector/processes/proc_reader.h"
#include "kernel-collector/processes/process_environment.h"
#include "profile/attributes.h"

// Fuzzes the parsers of a process's /proc files: maps, stat, cgroup and environ, all with the same bytes. The process
// itself chooses the names and paths in these files.

namespace {

void Require(bool holds) {
  if (!holds) abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  size_t code = 0;
  tributary::ParseMaps(text, [&](const tributary::MapsEntry& entry) {
    code += entry.executable;
    Require(entry.start < entry.end);
    Require(entry.path.size() <= size);
#ifdef TRIBUTARY_PLANT_CRASH
    // Only a completely valid line reaches this check.
    Require(entry.file_offset != 0x7000);
#endif
  });
  tributary::ParseCodeMaps(text, [&](const tributary::MapsEntry& entry) {
    Require(entry.executable);
    --code;
  });
  Require(code == 0);
  auto stat = tributary::ParseProcStat(text);
  if (stat.ok()) Require(stat->comm.size() + 2 <= size);
  tributary::CgroupPaths paths = tributary::ParseProcCgroup(text);
  Require(paths.unified.size() <= size);
  for (const tributary::CgroupPaths::Legacy& hierarchy : paths.legacy) {
    Require(hierarchy.path.starts_with('/'));
    Require(hierarchy.controllers.size() + hierarchy.path.size() + 2 <= size);
  }
  const tributary::ProcessEnvironment environment = tributary::ParseProcessEnvironment(text, {"STAGE"});
  Require(environment.attributes.size() <= tributary::kEnvironmentAttributesBytesMax);
  for (const auto& [key, value] : tributary::DecodeAttributes(environment.attributes)) Require(!key.empty());
  return 0;
}
