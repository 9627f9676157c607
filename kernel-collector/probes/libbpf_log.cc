#include "kernel-collector/probes/libbpf_log.h"

#include <bpf/libbpf.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <string_view>

#include "base/log.h"

namespace tributary {
namespace {

constexpr size_t kKeptBytesMax = 64 << 10;
constexpr size_t kMessageBytesMax = 16 << 20;  // a verifier log is at most this long
constexpr int kLoggedLinesMax = 100;

thread_local LibbpfLog* current = nullptr;

void LogLastLines(std::string_view message) {
  size_t begin = message.size();
  for (int lines = 0; begin > 0 && lines <= kLoggedLinesMax; ++lines) {
    begin = message.rfind('\n', begin - 1);
    if (begin == std::string_view::npos) begin = 0;
  }
  message.remove_prefix(begin);
  while (!message.empty()) {
    std::string_view line = message.substr(0, message.find('\n'));
    message.remove_prefix(std::min(message.size(), line.size() + 1));
    if (!line.empty()) LogDebug("libbpf: {}", line);
  }
}

int Print(libbpf_print_level level, const char* format, va_list arguments) {
  bool keep = current != nullptr && level != LIBBPF_DEBUG;
  if (!keep && !LogEnabled(LogLevel::kDebug)) return 0;
  va_list again;
  va_copy(again, arguments);
  int length = vsnprintf(nullptr, 0, format, arguments);
  std::string message(std::min<size_t>(std::max(length, 0), kMessageBytesMax), '\0');
  vsnprintf(message.data(), message.size() + 1, format, again);
  va_end(again);
  LogLastLines(message);
  if (keep) current->Append(message);
  return 0;
}

}  // namespace

LibbpfLog::LibbpfLog() {
  libbpf_set_print(Print);
  current = this;
}

LibbpfLog::~LibbpfLog() { current = nullptr; }

void LibbpfLog::Append(const std::string& message) {
  text_ += message;
  if (text_.size() > kKeptBytesMax) text_.erase(0, text_.size() - kKeptBytesMax);
}

}  // namespace tributary
