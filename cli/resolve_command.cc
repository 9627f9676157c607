#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/number.h"
#include "base/status.h"
#include "cli/commands.h"
#include "symbols/local_debug_files.h"

namespace tributary::cli {
namespace {

constexpr uint64_t kDebugBytesMax = uint64_t{16} << 30;

std::optional<uint64_t> ParseAddress(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  return ParseNumber<uint64_t>(text, 16);
}

// A function without a name gets the same name as in a profile.
std::string NameOf(const SymbolTable& table, const SymbolTable::Frame& frame, std::string_view file) {
  if (!frame.name.empty()) return std::string(frame.name);
  if (frame.inlined || frame.node == 0) return "??";
  return fmt::format("{}+0x{:x}", file.substr(file.rfind('/') + 1), table.StartOf(frame.node));
}

std::string FramesAsText(const SymbolTable& table, uint64_t address, std::string_view file) {
  std::string text = fmt::format("0x{:x}\n", address);
  const uint32_t row = table.FindRow(address);
  if (row == SymbolTable::kNoRow) return text + "  ??\n";
  table.ForEachFrame(row, [&](const SymbolTable::Frame& frame) {
    text += fmt::format("  {}{}", NameOf(table, frame, file), frame.inlined ? " (inlined)" : "");
    if (!frame.file.empty()) text += fmt::format(" {}:{}", frame.file, frame.line);
    text += '\n';
    return true;
  });
  return text;
}

std::string FramesAsJson(const SymbolTable& table, uint64_t address) {
  JsonWriter json;
  json.BeginObject();
  json.Field("address", fmt::format("0x{:x}", address));
  json.Key("frames");
  json.BeginArray();
  if (const uint32_t row = table.FindRow(address); row != SymbolTable::kNoRow) {
    table.ForEachFrame(row, [&](const SymbolTable::Frame& frame) {
      json.BeginObject();
      json.Field("function", frame.name);
      json.Field("file", frame.file);
      json.Field("line", frame.line);
      json.Field("inlined", frame.inlined);
      if (!frame.inlined && frame.node != 0) json.Field("start", fmt::format("0x{:x}", table.StartOf(frame.node)));
      json.EndObject();
      return true;
    });
  }
  json.EndArray();
  json.EndObject();
  return std::move(json).Take() + "\n";
}

absl::Status Print(std::string_view text) {
  if (fwrite(text.data(), 1, text.size(), stdout) == text.size()) return absl::OkStatus();
  return ErrnoStatus("write", "standard output", errno);
}

// A reason for missing names.
struct LeftOut {
  std::string_view key, description;
  uint64_t count;
};

std::vector<LeftOut> LeftOutOf(const DebugSymbols& symbols) {
  return {{"left_out", "symbols or debug entries were left out, because they were unreadable or exceeded a limit",
           symbols.left_out},
          {"malformed_units", "compilation units have malformed debug information: only its readable part is used",
           symbols.counts.malformed},
          {"missing_split_units", "compilation units have no functions, because their .dwo or .dwp file is missing",
           symbols.counts.missing_split}};
}

absl::Status PrintLeftOut(const DebugSymbols& symbols, const ResolveOptions& options) {
  for (const auto& [key, description, count] : LeftOutOf(symbols)) {
    if (count > 0) fmt::print(stderr, "{}: {} {}\n", options.file, count, description);
  }
  if (!options.json) return absl::OkStatus();
  JsonWriter json;
  json.BeginObject();
  json.Field("source", SymbolSourceName(symbols.table->source()));
  for (const auto& [key, description, count] : LeftOutOf(symbols)) json.Field(key, count);
  json.EndObject();
  return Print(std::move(json).Take() + "\n");
}

}  // namespace

absl::StatusOr<int> RunResolve(const ResolveOptions& options) {
  signal(SIGPIPE, SIG_IGN);  // with `… | head`, the work ends with a write error
  Fd fd(open(options.file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus("open", options.file, errno);
  auto opened = ElfFile::Open(std::move(fd));
  if (!opened.ok()) return WithContext(opened.status(), options.file);
  ASSIGN_OR_RETURN(const ExecutableId id, (*opened)->Identity());
  auto symbols = ReadDebugSymbols(**opened, id, LocalDebugFiles(options.file), kDebugBytesMax);
  if (!symbols.ok()) return WithContext(symbols.status(), options.file);
  auto answer = [&](std::string_view text) -> absl::Status {
    const std::optional<uint64_t> address = ParseAddress(text);
    if (!address) return absl::InvalidArgumentError(ToAbsl(fmt::format("\"{}\" is not a hexadecimal address", text)));
    return Print(options.json ? FramesAsJson(*symbols->table, *address)
                              : FramesAsText(*symbols->table, *address, options.file));
  };
  for (const std::string& address : options.addresses) RETURN_IF_ERROR(answer(address));
  for (std::string line; options.addresses.empty() && std::getline(std::cin, line);) {
    if (!line.empty()) RETURN_IF_ERROR(answer(line));
  }
  RETURN_IF_ERROR(PrintLeftOut(*symbols, options));
  if (fflush(stdout) != 0) return ErrnoStatus("write", "standard output", errno);
  return kExitOk;
}

}  // namespace tributary::cli
