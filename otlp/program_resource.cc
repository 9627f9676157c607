#include "otlp/program_resource.h"

#include <fmt/format.h>
#include <limits.h>
#include <unistd.h>

#include <span>

#include "base/hex.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "base/version.h"

namespace tributary::otlp {

std::string InstanceId(std::string_view host, int pid, UnixNs start) {
  Sha256Digest digest = Sha256(fmt::format("{} {} {}", host, pid, start.value));
  digest[6] = static_cast<uint8_t>((digest[6] & 0x0f) | 0x80);  // version 8
  digest[8] = static_cast<uint8_t>((digest[8] & 0x3f) | 0x80);  // the variant of RFC 9562
  const std::string hex = ToHex(std::span(digest).first(16));
  const std::string_view digits = hex;
  return fmt::format("{}-{}-{}-{}-{}", digits.substr(0, 8), digits.substr(8, 4), digits.substr(12, 4),
                     digits.substr(16, 4), digits.substr(20));
}

std::string HostName() {
  char host[HOST_NAME_MAX + 1] = {};
  return gethostname(host, sizeof host - 1) == 0 ? ToUtf8(host) : "";
}

Attributes ProgramResource(std::string_view program, std::string_view host, UnixNs start) {
  Attributes out;
  if (!host.empty()) SetAttribute(out, "host.name", host);
  SetAttribute(out, "service.instance.id", InstanceId(host, getpid(), start));
  SetAttribute(out, "service.name", program);
  SetAttribute(out, "service.version", kVersion);
  return out;
}

}  // namespace tributary::otlp
