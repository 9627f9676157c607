#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "elf/cfi_frames_testing.h"
#include "elf/unwind_rule.h"
#include "elf/unwind_source.h"

namespace tributary::testing {

// `file` must outlive the source.
inline std::unique_ptr<UnwindSource> OpenSource(std::string_view file) {
  auto elf = ElfFile::FromMemory(file);
  EXPECT_TRUE(elf.ok()) << elf.status();
  if (!elf.ok()) return nullptr;
  auto source = UnwindSource::Open(*std::move(elf));
  EXPECT_TRUE(source.ok()) << source.status();
  return source.ok() ? *std::move(source) : nullptr;
}

// Returns lines such as "+0 sp+8 fp=same second=same". Offsets are relative to kCode.
inline std::vector<std::string> Lines(UnwindSource& source, AddressRange range = {kCode, kCode + 0x1000}) {
  std::vector<UnwindRow> rows;
  absl::Status status = source.Compile(range, &rows);
  EXPECT_TRUE(status.ok()) << status;
  std::vector<std::string> lines;
  for (const UnwindRow& row : rows) {
    lines.push_back(fmt::format("+{:x} {}", range.begin - kCode + row.offset, FormatRule(row.rule)));
  }
  return lines;
}

// Returns the rows of one function of 0x100 bytes at kCode, without the row with TRIB_RULE_NONE after it.
inline std::vector<std::string> RowsOf(const std::string& instructions, const Frames::Common& common = {},
                                       uint16_t machine = kElfMachineX86_64) {
  Frames frames;
  uint64_t offset = frames.AddCommon(common);
  std::string data = common.augmentation.starts_with('z') ? std::string(1, '\0') : "";
  frames.AddFunction({offset, kCode, 0x100, instructions, data});
  ElfImage image = ImageWith(".eh_frame", frames.bytes());
  image.set_machine(machine);
  std::string file = image.Write();
  auto source = OpenSource(file);
  return source == nullptr ? std::vector<std::string>{} : Lines(*source, {kCode, kCode + 0x100});
}

}  // namespace tributary::testing
