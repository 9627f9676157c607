#include "dwarf/dwarf_functions.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "base/varint.h"

namespace tributary {
namespace {

template <typename T>
void Append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

constexpr AddressRange kCode[] = {{0x1000, 0x2000}};

// Records the data that it receives.
class Recorder : public DwarfSink {
 public:
  uint32_t AddString(std::string_view text) override {
    if (text.empty()) return 0;
    auto [it, added] = ids_.try_emplace(std::string(text), static_cast<uint32_t>(strings.size()));
    if (added) strings.emplace_back(text);
    return it->second;
  }
  uint32_t AddNode(uint32_t name, uint32_t parent, uint32_t, uint32_t call_line) override {
    nodes.push_back(strings[name] + (parent != 0 ? "@" + std::to_string(call_line) + " in " + nodes[parent] : ""));
    return static_cast<uint32_t>(nodes.size() - 1);
  }
  void AddCode(AddressRange range, uint32_t depth, uint32_t node) override {
    code.push_back(std::to_string(depth) + " " + std::to_string(range.begin) + "-" + std::to_string(range.end) + " " +
                   nodes[node]);
  }
  void AddLines(std::span<const DwarfLine> rows, uint64_t) override { lines += rows.size(); }

  std::vector<std::string> strings{""}, nodes{""}, code;
  size_t lines = 0;

 private:
  std::map<std::string, uint32_t> ids_;
};

// One DWARF 4 unit of entries, put together by hand. Codes: 1 unit, 2 function with a name and code, 3 inlined call
// (origin, code, line), 4 abstract function with a name, 5 function that is an instance of another, 6 a function
// without name or code but with an origin.
class TestUnit {
 public:
  TestUnit() {
    auto row = [this](uint64_t code, uint64_t tag, bool children, std::initializer_list<std::pair<int, int>> specs) {
      AppendVarint(abbrev_, code);
      AppendVarint(abbrev_, tag);
      abbrev_ += static_cast<char>(children);
      for (auto [attribute, form] : specs) {
        AppendVarint(abbrev_, static_cast<uint64_t>(attribute));
        AppendVarint(abbrev_, static_cast<uint64_t>(form));
      }
      abbrev_ += std::string(2, '\0');
    };
    row(1, kDwTagCompileUnit, true, {{0x03, 0x08}});
    row(2, kDwTagSubprogram, true, {{0x03, 0x08}, {0x11, 0x01}, {0x12, 0x06}});
    row(3, kDwTagInlinedSubroutine, true, {{0x31, 0x13}, {0x11, 0x01}, {0x12, 0x06}, {0x59, 0x0b}});
    row(4, kDwTagSubprogram, false, {{0x03, 0x08}, {0x6e, 0x08}});
    row(5, kDwTagSubprogram, true, {{0x31, 0x13}, {0x11, 0x01}, {0x12, 0x06}});
    row(6, kDwTagSubprogram, false, {{0x31, 0x13}});
    abbrev_ += '\0';
    Append<uint32_t>(info_, 0);
    Append<uint16_t>(info_, 4);
    Append<uint32_t>(info_, 0);
    Append<uint8_t>(info_, 8);
    info_ += '\1' + std::string("unit.c") + '\0';
  }

  uint32_t next() const { return static_cast<uint32_t>(info_.size()); }
  void Function(std::string_view name, uint64_t begin, uint32_t size) {
    info_ += '\2' + std::string(name) + '\0';
    Code(begin, size);
  }
  void Inlined(uint32_t origin, uint64_t begin, uint32_t size, uint8_t line) {
    info_ += '\3';
    Append(info_, origin);
    Code(begin, size);
    Append(info_, line);
  }
  uint32_t Abstract(std::string_view name, std::string_view linkage) {
    const uint32_t at = next();
    info_ += '\4' + std::string(name) + '\0' + std::string(linkage) + '\0';
    return at;
  }
  void Instance(uint32_t origin, uint64_t begin, uint32_t size) {
    info_ += '\5';
    Append(info_, origin);
    Code(begin, size);
  }
  uint32_t Referring(uint32_t origin) {
    const uint32_t at = next();
    info_ += '\6';
    Append(info_, origin);
    return at;
  }
  void End() { info_ += '\0'; }

  // Closes the unit.
  std::string Info() const {
    std::string info = info_ + '\0';
    const auto length = static_cast<uint32_t>(info.size() - 4);
    info.replace(0, 4, reinterpret_cast<const char*>(&length), 4);
    return info;
  }
  const std::string& abbrev() const { return abbrev_; }

 private:
  void Code(uint64_t begin, uint32_t size) {
    Append(info_, begin);
    Append(info_, size);
  }

  std::string info_, abbrev_;
};

DwarfFunctions::Counts ReadInto(Recorder& recorder, const std::string& info, const std::string& abbrev) {
  DwarfSections sections;
  sections.info = info;
  sections.abbrev = abbrev;
  auto module = DwarfModule::Open(sections, nullptr, nullptr);
  DwarfFunctions functions(kCode, recorder);
  if (module.ok()) functions.Read(**module, nullptr);
  return functions.counts();
}

TestUnit Usual() {
  TestUnit unit;
  const uint32_t inner = unit.Abstract("inner", "_Z5innerv"), outer = unit.Abstract("outer", "");
  unit.Function("main", 0x1100, 0x100);
  unit.Inlined(outer, 0x1120, 0x40, 7);
  unit.Inlined(inner, 0x1130, 0x10, 9);
  unit.End();
  unit.End();
  unit.End();
  unit.Instance(inner, 0x1300, 0x20);
  unit.End();
  unit.Function("thrown_away", 0, 0x100);
  unit.End();
  return unit;
}

TEST(DwarfFunctions, ReportFunctionsAndInlinedCalls) {
  Recorder recorder;
  const TestUnit unit = Usual();
  const auto counts = ReadInto(recorder, unit.Info(), unit.abbrev());
  const std::vector<std::string> expected = {"0 4352-4608 main", "1 4384-4448 outer@7 in main",
                                             "2 4400-4416 _Z5innerv@9 in outer@7 in main", "0 4864-4896 _Z5innerv"};
  EXPECT_EQ(recorder.code, expected);
  EXPECT_EQ(counts.functions, 2u);
  EXPECT_EQ(counts.inlined, 2u);
  EXPECT_EQ(counts.malformed, 0u);
}

TEST(DwarfFunctions, StopAtCircularOrigins) {
  TestUnit unit;
  const uint32_t first = unit.next();
  const uint32_t second = unit.Referring(first + 5);
  ASSERT_EQ(second, first);
  unit.Referring(first);
  unit.Instance(first, 0x1100, 0x10);
  unit.End();
  Recorder recorder;
  ReadInto(recorder, unit.Info(), unit.abbrev());
  EXPECT_EQ(recorder.code, std::vector<std::string>{"0 4352-4368 "});
}

TEST(DwarfFunctions, ReferencesOutOfTheUnitNameNothing) {
  for (uint32_t origin : {0u, 5u, 0x7fffffffu, 0xffffffffu}) {
    TestUnit unit;
    unit.Instance(origin, 0x1100, 0x10);
    unit.End();
    Recorder recorder;
    ReadInto(recorder, unit.Info(), unit.abbrev());
    EXPECT_EQ(recorder.code.size(), 1u);
  }
}

TEST(DwarfFunctions, EntriesNestedTooDeepEndTheUnit) {
  TestUnit unit;
  for (size_t i = 0; i <= DwarfFunctions::kNestingMax; ++i) unit.Function("deep", 0x1100, 0x10);
  Recorder recorder;
  EXPECT_EQ(ReadInto(recorder, unit.Info(), unit.abbrev()).malformed, 1u);
}

TEST(DwarfFunctions, SurviveTruncationAndFlippedBytes) {
  const TestUnit unit = Usual();
  const std::string info = unit.Info();
  for (size_t size = 0; size < info.size(); ++size) {
    Recorder recorder;
    ReadInto(recorder, info.substr(0, size), unit.abbrev());
  }
  std::mt19937 random(3);
  size_t code_count = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string changed = info, abbrev = unit.abbrev();
    for (int flips = 1 + random() % 3; flips > 0; --flips) {
      std::string& bytes = random() % 3 == 0 ? abbrev : changed;
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    Recorder recorder;
    ReadInto(recorder, changed, abbrev);
    code_count += recorder.code.size();
  }
  EXPECT_GT(code_count, 10'000u);
}

}  // namespace
}  // namespace tributary
