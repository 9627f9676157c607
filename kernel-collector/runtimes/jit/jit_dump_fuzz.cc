#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "kernel-collector/runtimes/jit/jit_dump.h"

// Fuzzes the parser of jitdumps: parts of different sizes must give the same records.

namespace {

using namespace tributary;

void Require(bool holds) {
  if (!holds) abort();
}

class Records : public JitDumpVisitor {
 public:
  void OnCode(const NewCode& code) override {
    Require(code.start < code.end && !code.name.empty() && code.name.size() <= JitDumpParser::kTextBytesMax);
    seen.push_back(std::string(code.name) + '\n' + std::string(code.file));
    for (const NewCode::Line& line : code.lines) seen.emplace_back(line.file);
#ifdef TRIBUTARY_PLANT_CRASH
    // Only code with lines reaches this check.
    Require(code.lines.size() < 2 || code.lines[1].line != 77);
#endif
    builder.Add(code);
  }
  void OnMove(const Move& move) override {
    Require(move.size > 0);
    seen.emplace_back("move");
    builder.AddGone(move.from, move.from + move.size, move.time);
  }
  std::vector<std::string> seen;
  CodeRunBuilder builder;
};

// Skips what the parser does not need.
std::vector<std::string> Parse(std::string_view bytes, size_t step, uint64_t* malformed) {
  JitDumpParser parser;
  Records records;
  for (uint64_t at = 0; at < bytes.size();) {
    const std::string_view part = bytes.substr(at, step);
    if (!parser.Add(part, records).ok()) break;
    at += part.size() + parser.TakeSkip();
  }
  *malformed = parser.malformed();
  const CodeRunPtr run = records.builder.Build({.by_time = true});
  CodeName name;
  for (uint64_t address : {uint64_t{0}, uint64_t{0x1000}, UINT64_MAX}) run->Find(address, MonotonicNs{1}, &name);
  return records.seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  uint64_t malformed = 0, malformed_in_parts = 0;
  Require(Parse(bytes, size + 1, &malformed) == Parse(bytes, 3, &malformed_in_parts));
  Require(malformed == malformed_in_parts);
  return 0;
}
