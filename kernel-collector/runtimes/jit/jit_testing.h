#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <string>

#include "kernel-collector/processes/fakes_testing.h"

namespace tributary {

// A fake /proc with one process that can write files for profilers. The process sees itself as pid 7.
class JitProc : public FakeProc {
 public:
  static constexpr int kPid = 4711;
  static constexpr uint64_t kStartTicks = 100;

  JitProc() { AddJitProcess(kPid, 7); }
  void AddJitProcess(int pid, int inner_pid, uint32_t user = geteuid()) {
    AddProcess(pid, {.start_ticks = kStartTicks});
    std::filesystem::create_directories(files() + "/tmp");
    Write(fmt::format("{}/{}/status", proc(), pid),
          fmt::format("Name:\tx\nUid:\t1\t{}\t3\t4\nGid:\t0\t0\t0\t0\nNSpid:\t{}\t{}\n", user, pid, inner_pid));
  }
  std::string map_path() const { return files() + "/tmp/perf-7.map"; }
  void WriteMap(std::string_view text) { Write(map_path(), text); }
  void AppendMap(std::string_view text) {
    std::ofstream(map_path(), std::ios::binary | std::ios::app)
        .write(text.data(), static_cast<std::streamsize>(text.size()));
  }
};

}  // namespace tributary
