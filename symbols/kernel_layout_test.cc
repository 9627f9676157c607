#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "elf/elf_image_testing.h"
#include "symbols/kallsyms.h"
#include "symbols/kernel_layout.h"

namespace tributary {
namespace {

// A /proc and a /sys with files that a test writes.
class KernelLayoutTest : public ::testing::Test {
 protected:
  KernelLayoutTest() {
    char path[] = "/tmp/tributary_layout_XXXXXX";
    root_ = mkdtemp(path);
    Write("sys/kernel/notes", testing::ElfImage::Note("GNU", 3, "kernel id"));
    std::string lines;
    // More than one read returns, so a line is cut between two reads.
    for (int i = 0; i < 20'000; ++i) lines += "ffffffff80000010 t some_function_of_the_kernel\n";
    Write("proc/kallsyms",
          "ffffffff81000000 T _stext\n" + lines + "ffffffff81e00000 T _etext\nffffffffc0000000 t x\t[m]\n");
  }
  ~KernelLayoutTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& content) {
    std::filesystem::path file = root_ + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
  }
  absl::StatusOr<KernelLayout> Read() { return ReadKernelLayout(root_ + "/proc", root_ + "/sys"); }

  std::string root_;
};

TEST_F(KernelLayoutTest, ReadsBoundsOfAKernelWithoutModules) {
  auto layout = Read();
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->text_begin, 0xffffffff81000000u);
  EXPECT_EQ(layout->text_end, 0xffffffff81e00000u);
  EXPECT_EQ(layout->id, *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::string_view("kernel id")));
  EXPECT_TRUE(layout->modules.empty());
}

TEST_F(KernelLayoutTest, ReadsModulesSortedByBase) {
  Write("proc/modules",
        "xfs 1000000 0 - Live 0xffffffffc0200000\n"
        "ext4 811008 1 jbd2,mbcache, Live 0xffffffffc0100000 (OE)\n"
        "hidden 4096 0 - Live 0x0000000000000000\n"
        "../../etc 4096 0 - Live 0xffffffffc0300000\n"
        "short line\n");
  Write("sys/module/ext4/sections/.text", "0xffffffffc0101000\n");
  Write("sys/module/ext4/notes/.note.gnu.build-id", testing::ElfImage::Note("GNU", 3, "ext4 id"));
  auto layout = Read();
  ASSERT_TRUE(layout.ok()) << layout.status();
  ASSERT_EQ(layout->modules.size(), 2u);
  EXPECT_EQ(layout->modules[0].name, "ext4");
  EXPECT_EQ(layout->modules[0].base, 0xffffffffc0101000u);
  EXPECT_EQ(layout->modules[0].size, 811008u - 0x1000);
  EXPECT_EQ(layout->modules[0].id, *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::string_view("ext4 id")));
  EXPECT_EQ(layout->modules[1].base, 0xffffffffc0200000u);
  EXPECT_FALSE(layout->modules[1].id.known());
}

TEST_F(KernelLayoutTest, KeepsModulesApart) {
  Write("proc/modules", "a 999999 0 - Live 0xffffffffc0100000\nb 4096 0 - Live 0xffffffffc0110000\n");
  auto layout = Read();
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->modules[0].size, 0x10000u);
}

TEST_F(KernelLayoutTest, ReadsGeneratedCode) {
  Write("proc/modules", "m 4096 0 - Live 0xffffffffc02ff800\n");
  Write("proc/kallsyms",
        "ffffffff81000000 T _stext\nffffffff81e00000 T _etext\nffffffffc02ff800 t x\t[m]\n"
        "ffffffffc0200000 t ftrace_trampoline\t[__builtin__ftrace]\n"
        "ffffffffc0102000 t bpf_prog_2_late\t[bpf]\nffffffffc0101000 t bpf_prog_1_early\t[bpf]\n"
        "ffffffffc02ff000 t kprobe_insn_page\t[__builtin__kprobes]\n0000000000000000 t bpf_prog_3_hidden\t[bpf]\n");
  auto layout = Read();
  ASSERT_TRUE(layout.ok()) << layout.status();
  ASSERT_EQ(layout->generated.size(), 4u);
  EXPECT_EQ(layout->generated[0].name, "bpf_prog_1_early");
  EXPECT_EQ(layout->generated[0].owner, "bpf");
  EXPECT_EQ(layout->generated[0].begin, 0xffffffffc0101000u);
  EXPECT_EQ(layout->generated[0].end, 0xffffffffc0102000u);
  EXPECT_EQ(layout->generated[1].end, 0xffffffffc0200000u);  // begin of the next code, within 1 MiB
  EXPECT_EQ(layout->generated[2].end, 0xffffffffc0201000u);  // not a BPF program: one page
  EXPECT_EQ(layout->generated[2].owner, "ftrace");
  EXPECT_EQ(layout->generated[3].owner, "kprobes");
  EXPECT_EQ(layout->generated[3].end, 0xffffffffc02ff800u);  // the module's text
}

TEST_F(KernelLayoutTest, LimitsTheEndOfGeneratedCode) {
  Write("proc/kallsyms",
        "ffffffff81000000 T _stext\nffffffff81e00000 T _etext\nffffffffc0000000 t bpf_prog_1_a\t[bpf]\n"
        "ffffffffffffff00 t bpf_prog_2_b\t[bpf]\n");
  auto layout = Read();
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->generated[0].end - layout->generated[0].begin, kBpfProgramBytesMax);
  EXPECT_EQ(layout->generated[1].end, UINT64_MAX);
}

TEST_F(KernelLayoutTest, ReportsMissingData) {
  Write("proc/kallsyms", "0000000000000000 T _stext\n0000000000000000 T _etext\n");
  EXPECT_EQ(Read().status().code(), absl::StatusCode::kPermissionDenied);
  Write("proc/kallsyms", "ffffffff81000000 T _stext\n");
  EXPECT_EQ(Read().status().code(), absl::StatusCode::kInvalidArgument);
  std::filesystem::remove(root_ + "/sys/kernel/notes");
  EXPECT_EQ(Read().status().code(), absl::StatusCode::kNotFound);
}

TEST(KernelLayout, ReadsThisMachine) {
  auto layout = ReadKernelLayout();
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_TRUE(layout->id.known());
  EXPECT_LT(layout->text_begin, layout->text_end);
  std::ifstream in("/proc/kallsyms");
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  auto parsed = ParseKallsyms(text, layout->id);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->text_begin, layout->text_begin);
  EXPECT_EQ(parsed->text_end, layout->text_end);
  EXPECT_GT(parsed->table->function_count(), 1000u);
}

}  // namespace
}  // namespace tributary
