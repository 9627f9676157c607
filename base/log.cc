#include "base/log.h"

#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <vector>

#include "base/log_setup.h"
#include "base/utf8.h"

namespace tributary {
namespace {

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return spdlog::level::trace;
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kCritical:
      return spdlog::level::critical;
  }
  return spdlog::level::info;
}

// Local time in the format of RFC 3339, with milliseconds and the zone's offset.
#define TRIBUTARY_LOG_TIME "%Y-%m-%dT%H:%M:%S.%e%z"

const char* PatternOf(LogFormat format) {
  switch (format) {
    case LogFormat::kText:
      break;
    case LogFormat::kLogfmt:
      return "time=" TRIBUTARY_LOG_TIME " level=%l msg=\"%v\"";
    case LogFormat::kJson:
      return R"({"time":")" TRIBUTARY_LOG_TIME R"(","level":"%l","msg":"%v"})";
  }
  return TRIBUTARY_LOG_TIME " %l %v";
}

struct LogState {
  std::shared_ptr<spdlog::logger> logger;
  LogFormat format = LogFormat::kText;
};

LogState& State() {
  static LogState state = [] {
    auto logger = std::make_shared<spdlog::logger>("tributary", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    logger->set_pattern(PatternOf(LogFormat::kText));
    return LogState{std::move(logger)};
  }();
  return state;
}

// Escapes the inside of a quoted value. Both formats treat these two characters alike. EscapeForDisplay has already
// escaped the others.
std::string EscapeQuotes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

// C1 controls (U+0080–U+009F) control terminals like ESC does. U+200B–U+200F, U+2028–U+202E, U+2060–U+206F and U+FEFF
// hide or reorder text.
bool Steers(std::string_view character) {
  const auto byte = [character](size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 2) return byte(0) == 0xc2 && byte(1) < 0xa0;
  if (character.size() != 3) return false;
  const uint32_t code = (byte(0) & 0x0fu) << 12 | (byte(1) & 0x3fu) << 6 | (byte(2) & 0x3fu);
  return (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2060 && code <= 0x206f) || code == 0xfeff;
}

}  // namespace

void InitLog(const LogOptions& options) { InitLog(LogSetup{.options = options}); }

void InitLog(const LogSetup& setup) {
  const LogOptions& options = setup.options;
  std::vector<spdlog::sink_ptr> sinks;
  if (options.console) sinks.push_back(std::make_shared<spdlog::sinks::stderr_sink_mt>());
  if (!options.file_path.empty()) {
    try {
      sinks.push_back(std::make_shared<spdlog::sinks::rotating_file_sink_mt>(options.file_path, 1 << 20, 5));
    } catch (const spdlog::spdlog_ex& e) {
      sinks.push_back(std::make_shared<spdlog::sinks::stderr_sink_mt>());
      LogWarning("cannot open the log file path={} cause={}: the log goes to standard error", options.file_path,
                 e.what());
    }
  }
  auto logger = std::make_shared<spdlog::logger>("tributary", sinks.begin(), sinks.end());
  logger->set_pattern(PatternOf(setup.format));
  logger->set_level(ToSpdlog(options.level));
  logger->flush_on(spdlog::level::info);
  State() = {std::move(logger), setup.format};
}

void SetLogLevel(LogLevel level) { State().logger->set_level(ToSpdlog(level)); }

bool LogEnabled(LogLevel level) { return State().logger->should_log(ToSpdlog(level)); }

void LogLine(LogLevel level, std::string_view line) {
  const std::string shown = EscapeForDisplay(line);
  const LogState& state = State();
  state.logger->log(ToSpdlog(level), "{}", state.format == LogFormat::kText ? shown : EscapeQuotes(shown));
}

std::string EscapeForDisplay(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    size_t length = Utf8SequenceLength(text.substr(i));
    auto c = static_cast<unsigned char>(text[i]);
    if (length == 0 || c < 0x20 || c == 0x7f || Steers(text.substr(i, length))) {
      size_t n = length == 0 ? 1 : length;
      for (size_t k = 0; k < n; ++k) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i + k]));
      i += n;
    } else {
      out.append(text.substr(i, length));
      i += length;
    }
  }
  return out;
}

}  // namespace tributary
