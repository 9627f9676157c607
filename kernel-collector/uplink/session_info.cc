#include "kernel-collector/uplink/session_info.h"

#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "base/status.h"
#include "base/version.h"
#include "kernel-collector/metadata/host_facts.h"
#include "kernel-collector/metadata/host_files.h"
#include "kernel-collector/processes/proc_files.h"

namespace tributary {
namespace {

std::string FirstLine(const std::string& path) {
  auto text = ReadSmallFile(path, 4096);
  if (!text.ok()) return "";
  return text->substr(0, text->find('\n'));
}

// OpenTelemetry's host.arch.
std::string ArchitectureName(std::string_view machine) {
  if (machine == "x86_64") return "amd64";
  if (machine == "aarch64") return "arm64";
  return std::string(machine);
}

}  // namespace

absl::StatusOr<SessionInfo> MakeSessionInfo(const SessionInfoOptions& options) {
  SessionInfo info;
  if (getrandom(info.session_id.data(), info.session_id.size(), 0) != static_cast<ssize_t>(info.session_id.size())) {
    return ErrnoStatus("getrandom", "session id", errno);
  }
  const HostFiles files(options.host_dir, options.proc_root);
  info.host_name = ReadHostName(files, options.proc_root);
  utsname names{};
  uname(&names);
  info.kernel_release = names.release;
  info.architecture = ArchitectureName(names.machine);
  info.node_id = options.node_id;
  if (info.node_id.empty()) info.node_id = ReadHostId(files, options.sys_root);
  if (info.node_id.empty()) info.node_id = info.host_name;
  info.boot_id = FirstLine(options.proc_root + "/sys/kernel/random/boot_id");
  info.agent_version = kVersion;
  info.cpu_count = static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN));
  info.sample_rate_hz = options.sample_rate_hz;
  return info;
}

}  // namespace tributary
