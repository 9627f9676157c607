#include "elf/mini_debug_info.h"

#include <gtest/gtest.h>
#include <lzma.h>

#include <random>

#include "elf/elf_image_testing.h"
#include "elf/xz.h"
#include "elf/xz_testing.h"

namespace tributary {
namespace {

using testing::ElfImage;
using testing::Xz;

TEST(Xz, RoundTripsWithinItsLimit) {
  std::string raw(300'000, 'x');
  std::mt19937 random(1);
  for (size_t i = 0; i < raw.size(); i += 7) raw[i] = static_cast<char>(random());
  for (const std::string& each : {std::string(), std::string("a"), raw}) {
    for (uint32_t level : {0u, 6u, 9u}) {
      auto got = XzDecompress(Xz(each, level), each.size());
      ASSERT_TRUE(got.ok()) << got.status();
      EXPECT_TRUE(*got == each);
    }
    if (each.empty()) continue;
    EXPECT_EQ(XzDecompress(Xz(each), each.size() - 1).status().code(), absl::StatusCode::kResourceExhausted);
  }
}

TEST(Xz, RefusesCorruptStreams) {
  const std::string good = Xz("function names");
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(XzDecompress(good.substr(0, size), 1000).status().code(), absl::StatusCode::kInvalidArgument) << size;
  }
  EXPECT_FALSE(XzDecompress(good + "x", 1000).ok());
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x55);
    EXPECT_FALSE(XzDecompress(bad, 1000).ok()) << i;
  }
}

TEST(Xz, RefusesAHugeDictionary) {
  lzma_options_lzma options;
  ASSERT_FALSE(lzma_lzma_preset(&options, 0));
  options.dict_size = 1u << 30;
  options.mf = LZMA_MF_HC3;
  lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}};
  // An encoder for such a dictionary would itself take gigabytes. So the test encodes with a dictionary of 4 KiB, and
  // then changes the size in the block's header and that header's checksum.
  options.dict_size = 4096;
  std::string stored(4096, '\0');
  size_t size = 0;
  ASSERT_EQ(lzma_stream_buffer_encode(filters, LZMA_CHECK_NONE, nullptr, reinterpret_cast<const uint8_t*>("raw"), 3,
                                      reinterpret_cast<uint8_t*>(stored.data()), &size, stored.size()),
            LZMA_OK);
  stored.resize(size);
  ASSERT_TRUE(XzDecompress(stored, 100).ok());
  constexpr size_t kBlock = 12;
  const size_t header_bytes = (static_cast<uint8_t>(stored[kBlock]) + 1) * 4;
  const size_t properties = stored.find(std::string("\x21\x01", 2), kBlock) + 2;
  ASSERT_LT(properties, kBlock + header_bytes);
  stored[properties] = 36;  // 1 GiB
  const uint32_t crc =
      lzma_crc32(reinterpret_cast<const uint8_t*>(stored.data() + kBlock), header_bytes - sizeof(uint32_t), 0);
  std::memcpy(stored.data() + kBlock + header_bytes - sizeof(crc), &crc, sizeof(crc));
  EXPECT_EQ(XzDecompress(stored, 100).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(MiniDebugInfo, IsAnElfFileWithinTheFile) {
  auto read = [](std::string_view section, const std::string& bytes, uint64_t bytes_max) {
    ElfImage outer;
    outer.AddSection(section, 1, bytes);
    const std::string file = outer.Write();
    return ReadMiniDebugInfo(**ElfFile::FromMemory(file), bytes_max);
  };
  ElfImage inner;
  inner.AddSection(".text", 1, "code", 6);
  const std::string stored = Xz(inner.Write());
  auto mini = read(".gnu_debugdata", stored, 1 << 20);
  ASSERT_TRUE(mini.ok()) << mini.status();
  EXPECT_EQ((*(*mini)->file->Sections())->at(1).name, ".text");
  EXPECT_EQ(read(".other", stored, 1 << 20).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(read(".gnu_debugdata", stored, 100).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(read(".gnu_debugdata", Xz("no ELF file"), 1 << 20).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(read(".gnu_debugdata", "no xz", 1 << 20).status().code(), absl::StatusCode::kInvalidArgument);
  inner.set_machine(kElfMachineArm64);
  EXPECT_EQ(read(".gnu_debugdata", Xz(inner.Write()), 1 << 20).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tributary
