#include "elf/elf_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <random>

#include "elf/elf_format.h"
#include "elf/elf_image_testing.h"

namespace tributary {
namespace {

using testing::ElfImage;

std::string Output(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  std::string out;
  char chunk[4096];
  while (size_t n = fread(chunk, 1, sizeof(chunk), pipe)) out.append(chunk, n);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return out;
}

std::unique_ptr<ElfFile> OpenFile(const std::string& path) {
  auto file = ElfFile::Open(Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC)));
  EXPECT_TRUE(file.ok()) << path << ": " << file.status();
  return file.ok() ? *std::move(file) : nullptr;
}

// Does everything that a reader of a hostile file does. Reads may fail. They must not crash, and must not return more
// bytes than the file has.
void ReadAll(std::string_view bytes) {
  auto file = ElfFile::FromMemory(bytes);
  if (!file.ok()) return;
  auto id = (*file)->Identity();
  EXPECT_TRUE(!id.ok() || id->known());
  auto sections = (*file)->Sections();
  if (!sections.ok()) return;
  for (const ElfSection& section : **sections) {
    auto content = (*file)->SectionBytes(section, 1 << 20);
    EXPECT_TRUE(!content.ok() || content->size() <= bytes.size());
  }
}

TEST(ElfFile, AgreesWithReadelfOnBuildIds) {
  for (const char* path : {"/bin/bash", "/bin/ls", "/lib/x86_64-linux-gnu/libc.so.6",
                           "/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/bin/python3", "/usr/bin/readelf"}) {
    std::unique_ptr<ElfFile> file = OpenFile(path);
    ASSERT_NE(file, nullptr);
    auto id = file->Identity();
    ASSERT_TRUE(id.ok()) << id.status();
    EXPECT_EQ(id->kind(), ExecutableIdKind::kGnuBuildId) << path;
    std::string notes = Output(std::string("readelf -n ") + path);
    EXPECT_NE(notes.find("Build ID: " + id->ToString() + "\n"), std::string::npos) << path << "\n" << notes;
  }
}

TEST(ElfFile, AgreesWithReadelfOnSectionsAndSegments) {
  const char* path = "/lib/x86_64-linux-gnu/libc.so.6";
  std::unique_ptr<ElfFile> file = OpenFile(path);
  ASSERT_NE(file, nullptr);
  auto sections = file->Sections();
  ASSERT_TRUE(sections.ok());
  std::string headers = Output(std::string("readelf -SW ") + path);
  for (const ElfSection& section : **sections) {
    char line[200];
    snprintf(line, sizeof(line), "%016lx %06lx %06lx", section.address, section.offset, section.size);
    size_t at = headers.find(line);
    ASSERT_NE(at, std::string::npos) << section.name;
    size_t begin = headers.rfind('\n', at);
    EXPECT_NE(headers.substr(begin, at - begin).find(section.name), std::string::npos);
  }
  std::string loads = Output(std::string("readelf -lW ") + path + " | grep -c LOAD");
  EXPECT_EQ(file->segments().size(), std::stoul(loads));
}

TEST(ElfFile, TurnsFileOffsetsIntoAddresses) {
  std::vector<ElfSegment> segments = {{0, 0x1000, 0, 0x1000, false}, {0x1000, 0x500, 0x2000, 0x5000, true}};
  EXPECT_EQ(FileOffsetToAddress(segments, 0), 0u);
  EXPECT_EQ(FileOffsetToAddress(segments, 0x14ff), 0x24ffu);
  EXPECT_EQ(FileOffsetToAddress(segments, 0x1500), std::nullopt);  // in memory only
  EXPECT_EQ(FileOffsetToAddress(segments, UINT64_MAX), std::nullopt);
}

TEST(ElfFile, PrefersGnuThenGoThenContents) {
  ElfImage plain;
  std::string bytes = plain.Write();
  auto id = (*ElfFile::FromMemory(bytes))->Identity();
  ASSERT_TRUE(id.ok());
  EXPECT_EQ(id->kind(), ExecutableIdKind::kContentHash);

  ElfImage go;
  go.AddSection(".note.go.buildid", kElfSectionNote, ElfImage::Note("Go", 4, "abc/def/ghi"));
  bytes = go.Write();
  id = (*ElfFile::FromMemory(bytes))->Identity();
  ASSERT_TRUE(id.ok());
  EXPECT_EQ(id->ToString(), "go:" + Output("printf abc/def/ghi | sha256sum").substr(0, 32));

  go.AddSection(".note.gnu.build-id", kElfSectionNote, ElfImage::Note("GNU", 3, "\x01\x02\x03\x04"));
  bytes = go.Write();
  id = (*ElfFile::FromMemory(bytes))->Identity();
  ASSERT_TRUE(id.ok());
  EXPECT_EQ(id->ToString(), "01020304");
}

TEST(ElfFile, IgnoresABuildIdOfABadLength) {
  for (size_t size : {0u, 21u, 64u}) {
    ElfImage image;
    image.AddNoteSegment(ElfImage::Note("GNU", 3, std::string(size, 'x')));
    std::string bytes = image.Write();
    auto id = (*ElfFile::FromMemory(bytes))->Identity();
    ASSERT_TRUE(id.ok());
    EXPECT_EQ(id->kind(), ExecutableIdKind::kContentHash);
  }
}

TEST(ElfFile, HashesBothEndsAndTheSize) {
  ElfImage image;
  image.AddSection(".data", 1, std::string(20'000, 'd'));
  std::string bytes = image.Write();
  char path[] = "/tmp/tributary_elf_XXXXXX";
  Fd fd(mkstemp(path));
  ASSERT_EQ(write(fd.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  std::unique_ptr<ElfFile> file = OpenFile(path);
  ASSERT_NE(file, nullptr);
  auto id = file->Identity();
  char size[64];
  snprintf(size, sizeof(size), "\\0\\0\\0\\0\\0\\%03o\\%03o\\%03o", static_cast<unsigned>(bytes.size() >> 16 & 255),
           static_cast<unsigned>(bytes.size() >> 8 & 255), static_cast<unsigned>(bytes.size() & 255));
  std::string command =
      std::string("(head -c 4096 ") + path + "; tail -c 4096 " + path + "; printf '" + size + "') | sha256sum";
  EXPECT_EQ(id->ToString(), "htl:" + Output(command).substr(0, 32));
  unlink(path);
}

TEST(ElfFile, RefusesOtherFiles) {
  EXPECT_FALSE(ElfFile::FromMemory("").ok());
  EXPECT_FALSE(ElfFile::FromMemory("#!/bin/sh\n" + std::string(100, ' ')).ok());
  EXPECT_FALSE(ElfFile::Open(Fd(open("/", O_RDONLY | O_CLOEXEC))).ok());
  EXPECT_FALSE(ElfFile::Open(Fd(open("/dev/zero", O_RDONLY | O_CLOEXEC))).ok());
  EXPECT_FALSE(ElfFile::Open(Fd()).ok());
  std::string bytes = ElfImage().Write();
  for (auto [offset, value] : {std::pair{4, 1}, {5, 2}, {6, 0}, {16, 0}, {16, 4}, {18, 3}, {54, 32}}) {
    std::string other = bytes;
    other[offset] = static_cast<char>(value);
    EXPECT_EQ(ElfFile::FromMemory(other).status().code(), absl::StatusCode::kInvalidArgument) << offset;
  }
}

TEST(ElfFile, ASegmentWithoutBytesMayLieAnywhere) {
  ElfImage image;
  image.AddSection(".text", 1, std::string(64, '\x90'));
  std::string bytes = image.Write();
  const uint64_t none = 0, behind = bytes.size() + 1;
  std::memcpy(bytes.data() + sizeof(ElfHeader) + offsetof(ElfProgramHeader, file_size), &none, 8);
  std::memcpy(bytes.data() + sizeof(ElfHeader) + offsetof(ElfProgramHeader, offset), &behind, 8);
  auto file = ElfFile::FromMemory(bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->segments().size(), 1u);
  EXPECT_FALSE(FileOffsetToAddress((*file)->segments(), behind));
}

TEST(ElfFile, RefusesWrongNumbers) {
  ElfImage image;
  image.AddSection(".text", 1, std::string(64, '\x90'));
  const std::string good = image.Write();
  auto header = ReadElfStruct<ElfHeader>(good, 0);
  constexpr uint64_t kFourGb = uint64_t{4} << 30;
  for (uint64_t lie : {good.size() + 1, kFourGb, uint64_t{1} << 63, UINT64_MAX - 8}) {
    for (size_t field : {offsetof(ElfProgramHeader, offset), offsetof(ElfProgramHeader, file_size)}) {
      std::string bytes = good;
      std::memcpy(bytes.data() + sizeof(ElfHeader) + field, &lie, 8);
      EXPECT_EQ(ElfFile::FromMemory(bytes).status().code(), absl::StatusCode::kInvalidArgument);
    }
    std::string bytes = good;
    std::memcpy(bytes.data() + offsetof(ElfHeader, section_header_offset), &lie, 8);
    EXPECT_FALSE((*ElfFile::FromMemory(bytes))->Sections().ok());

    bytes = good;
    std::memcpy(
        bytes.data() + header.section_header_offset + sizeof(ElfSectionHeader) + offsetof(ElfSectionHeader, size), &lie,
        8);
    auto file = *ElfFile::FromMemory(bytes);
    auto sections = file->Sections();
    ASSERT_TRUE(sections.ok());
    EXPECT_EQ(file->SectionBytes((**sections)[1], UINT64_MAX).status().code(), absl::StatusCode::kInvalidArgument);
  }
  std::string bytes = good;
  uint16_t count = 0xfffe;
  std::memcpy(bytes.data() + offsetof(ElfHeader, program_header_count), &count, 2);
  EXPECT_FALSE(ElfFile::FromMemory(bytes).ok());
  bytes = good;
  std::memcpy(bytes.data() + offsetof(ElfHeader, section_header_count), &count, 2);
  EXPECT_FALSE((*ElfFile::FromMemory(bytes))->Sections().ok());
  // 0 sections: the count is in section 0, where it may be any 64-bit number.
  bytes = good;
  count = 0;
  std::memcpy(bytes.data() + offsetof(ElfHeader, section_header_count), &count, 2);
  uint64_t huge = UINT64_MAX / 64;
  std::memcpy(bytes.data() + header.section_header_offset + offsetof(ElfSectionHeader, size), &huge, 8);
  EXPECT_FALSE((*ElfFile::FromMemory(bytes))->Sections().ok());
}

TEST(ElfFile, KeepsTheCallersLimit) {
  ElfImage image;
  image.AddSection(".data", 1, std::string(1000, 'd'));
  std::string bytes = image.Write();
  auto file = *ElfFile::FromMemory(bytes);
  auto sections = file->Sections();
  ASSERT_TRUE(sections.ok());
  EXPECT_EQ((**sections)[1].name, ".data");
  EXPECT_TRUE(file->SectionBytes((**sections)[1], 1000).ok());
  EXPECT_EQ(file->SectionBytes((**sections)[1], 999).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(ElfFile, NoticesAShrinkingFile) {
  ElfImage image;
  image.AddSection(".data", 1, std::string(100'000, 'd'));
  std::string bytes = image.Write();
  char path[] = "/tmp/tributary_elf_XXXXXX";
  Fd fd(mkstemp(path));
  ASSERT_EQ(write(fd.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  std::unique_ptr<ElfFile> file = OpenFile(path);
  ASSERT_NE(file, nullptr);
  auto sections = file->Sections();
  ASSERT_TRUE(sections.ok());
  ASSERT_EQ(ftruncate(fd.get(), 500), 0);
  EXPECT_FALSE(file->SectionBytes((**sections)[1], 1 << 20).ok());
  unlink(path);
}

TEST(ElfFile, SurvivesTruncationAndFlippedBytes) {
  std::string real = Output("cat /bin/true");
  for (size_t size = 0; size < real.size(); size += 64) ReadAll(std::string_view(real).substr(0, size));
  std::mt19937 random(7);
  auto header = ReadElfStruct<ElfHeader>(real, 0);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = real;
    for (int flips = 1 + random() % 8; flips > 0; --flips) {
      // Mostly in the headers.
      size_t at = random() % 3 == 0 ? random() % bytes.size()
                  : random() % 2 == 0
                      ? random() % 1024
                      : header.section_header_offset + random() % (bytes.size() - header.section_header_offset);
      bytes[at] = static_cast<char>(random());
    }
    ReadAll(bytes);
  }
}

}  // namespace
}  // namespace tributary
