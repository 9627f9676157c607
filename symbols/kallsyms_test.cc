#include "symbols/kallsyms.h"

#include <gtest/gtest.h>

#include "elf/elf_image_testing.h"

namespace tributary {
namespace {

ExecutableId SomeId() { return *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::string_view("kernel")); }

constexpr std::string_view kText =
    "0000000000000000 A fixed_percpu_data\n"
    "ffffffff81000000 T startup_64\n"
    "ffffffff81000000 T _stext\n"
    "ffffffff81000000 T _text\n"
    "ffffffff81000040 t verify_cpu\n"
    "ffffffff81000100 T __sched_text_start\n"
    "ffffffff81000100 t __schedule\n"
    "ffffffff81000200 W weak_one\n"
    "ffffffff81000200 t local_one\n"
    "ffffffff81000300 D data_in_between\n"
    "ffffffff81001000 T _etext\n"
    "ffffffff82000000 T init_function\n"
    "ffffffffc0001000 t ext4_init\t[ext4]\n"
    "ffffffffc0001080 T ext4_read\t[ext4]\n"
    "ffffffffc0002000 t other\t[other]\n"
    "ffffffffc0003000 t bpf_prog_6deef7357e7b4530\t[bpf]\n";

std::string NameAt(const SymbolTable& table, uint64_t address) {
  auto match = table.Find(address);
  return match ? std::string(match->name) : "-";
}

TEST(Kallsyms, RebasesTheKernelsFunctions) {
  auto parsed = ParseKallsyms(kText, SomeId());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->text_begin, 0xffffffff81000000u);
  EXPECT_EQ(parsed->text_end, 0xffffffff81001000u);
  EXPECT_EQ(parsed->table->source(), SymbolSource::kKallsyms);
  EXPECT_EQ(parsed->table->id(), SomeId());
  EXPECT_EQ(NameAt(*parsed->table, 0), "startup_64");
  EXPECT_EQ(NameAt(*parsed->table, 0x40), "verify_cpu");
  EXPECT_EQ(NameAt(*parsed->table, 0xff), "verify_cpu");
  EXPECT_EQ(NameAt(*parsed->table, 0x100), "__schedule");  // not the section's marker
  EXPECT_EQ(NameAt(*parsed->table, 0x200), "weak_one");
  EXPECT_EQ(NameAt(*parsed->table, 0xfff), "weak_one");  // the last reaches to _etext
  EXPECT_EQ(NameAt(*parsed->table, 0x1000), "-");
  EXPECT_EQ(parsed->table->function_count(), 4u);
}

TEST(Kallsyms, TakesADataSymbolAsTheEndOfText) {  // as on arm64
  auto parsed = ParseKallsyms(
      "ffffae31b4610000 T _stext\n"
      "ffffae31b4610000 t bcm2835_handle_irq\n"
      "ffffae31b5400000 D _etext\n",
      SomeId());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->text_end, 0xffffae31b5400000u);
  EXPECT_EQ(NameAt(*parsed->table, 0xdeffff), "bcm2835_handle_irq");
  EXPECT_EQ(parsed->table->function_count(), 1u);
}

TEST(Kallsyms, ReportsWhenAddressesAreHidden) {
  auto parsed = ParseKallsyms("0000000000000000 T _stext\n0000000000000000 T _etext\n", SomeId());
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_NE(parsed.status().message().find("kptr_restrict"), absl::string_view::npos);
}

TEST(Kallsyms, RefusesTextWithoutStext) {
  for (std::string_view text : {"", "\n\n", "no such file", "ffffffff81000000 T startup_64\n",
                                "ffffffff81000000 T _etext\nffffffff81001000 T _stext\n"}) {
    EXPECT_EQ(ParseKallsyms(text, SomeId()).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(Kallsyms, SkipsMalformedLines) {
  std::string text = "garbage\nffffffff81000010\nffffffff81000010 T\nffffffff81000010 T \n 12 T x\n\tT\n";
  text += "fffffffffffffffff81000010 T too_long\nffffffff81000020 T half\t[open\n";
  text += kText;
  auto parsed = ParseKallsyms(text, SomeId());
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->table->function_count(), 4u);
}

TEST(Kallsyms, TakesOneModulesFunctions) {
  auto table = ParseModuleSymbols(kText, "ext4", 0xffffffffc0001000, 0x200, SomeId());
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(NameAt(**table, 0x7f), "ext4_init");
  EXPECT_EQ(NameAt(**table, 0x80), "ext4_read");
  EXPECT_EQ(NameAt(**table, 0x1ff), "ext4_read");
  EXPECT_EQ(NameAt(**table, 0x200), "-");
  EXPECT_EQ((*table)->function_count(), 2u);
  EXPECT_EQ(ParseModuleSymbols(kText, "xfs", 1, 1, SomeId()).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ParseModuleSymbols(kText, "", 1, UINT64_MAX, SomeId()).status().code(), absl::StatusCode::kNotFound);
}

// Modules of arm64 have such marks among their functions.
TEST(Kallsyms, IgnoresMarksOfCodeAndData) {
  constexpr std::string_view kModule =
      "ffff800000001000 t $x\t[m]\n"
      "ffff800000001000 t first\t[m]\n"
      "ffff800000001040 t $x.7\t[m]\n"
      "ffff800000001050 t $d\t[m]\n"
      "ffff800000001060 t $xy\t[m]\n";
  auto table = ParseModuleSymbols(kModule, "m", 0xffff800000001000, 0x100, SomeId());
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(NameAt(**table, 0), "first");
  EXPECT_EQ(NameAt(**table, 0x5f), "first");
  EXPECT_EQ(NameAt(**table, 0x60), "$xy");
}

TEST(BuildIdFromNotes, ReadsTheGnuNote) {
  using testing::ElfImage;
  std::string notes = ElfImage::Note("Xen", 6, "linux") + ElfImage::Note("GNU", 3, std::string(20, '\x5a'));
  auto id = BuildIdFromNotes(notes);
  ASSERT_TRUE(id.ok());
  EXPECT_EQ(id->ToString(), "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a");
  EXPECT_EQ(BuildIdFromNotes("").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(BuildIdFromNotes(ElfImage::Note("GNU", 3, std::string(30, 'x'))).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tributary
