#include "kernel-collector/runtimes/python/code_object.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "elf/elf_format.h"
#include "kernel-collector/runtimes/python/memory_image_testing.h"
#include "kernel-collector/runtimes/python/python_layout_testing.h"

namespace tributary {
namespace {

// A code object of 3.11 that is made by hand: Loader.load of /srv/app.py, with two lines.
class CodeObjectTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kCode = 0x7f0000001000, kName = 0x7f0000002000, kFile = 0x7f0000003000,
                            kQualifiedName = 0x7f0000004000, kTable = 0x7f0000005000;
  static constexpr uint64_t kCodeType = 0x555500001000, kTextType = 0x555500002000, kBytesType = 0x555500003000;

  CodeObjectTest() {
    std::string code(layout_.code_bytes, '\0');
    Put(&code, 0, uint64_t{2});
    Put(&code, layout_.type, kCodeType);
    Put(&code, layout_.code_first_line, uint32_t{40});
    Put(&code, layout_.code_name, kName);
    Put(&code, layout_.code_filename, kFile);
    Put(&code, layout_.code_qualified_name, kQualifiedName);
    Put(&code, layout_.code_line_table, kTable);
    memory_.Set(kCode, code);
    SetText(kName, "load");
    SetText(kFile, "/srv/app.py");
    SetText(kQualifiedName, "Loader.load");
    std::string table(layout_.bytes_data, '\0');
    Put(&table, 0, uint64_t{1});
    Put(&table, layout_.type, kBytesType);
    Put(&table, layout_.bytes_size, uint64_t{5});
    memory_.Set(kTable, table + "\x81\x12" + "\xd8\x01\x02");  // two units of line 40, then one of line 41
    Put(&memory_.piece(kName), layout_.walk.name_hash, uint64_t{0x1234});
  }

  template <typename T>
  static void Put(std::string* bytes, size_t offset, T value) {
    std::memcpy(bytes->data() + offset, &value, sizeof(value));
  }
  void SetText(uint64_t address, const std::string& text) {
    std::string object(layout_.text_ascii, '\0');
    Put(&object, 0, uint64_t{1});
    Put(&object, layout_.type, kTextType);
    Put(&object, layout_.text_length, uint64_t{text.size()});
    Put(&object, layout_.text_state, uint32_t{(1 | 8 | 16) << 2});
    memory_.Set(address, object + text);
  }
  uint32_t Check() {
    uint64_t hash = 0;
    for (unsigned i = 0; i < layout_.walk.check_bytes; i += 8) {
      hash = TRIB_CHECK_ADD(hash, ReadElfStruct<uint64_t>(memory_.piece(kCode), layout_.walk.check_first + i));
    }
    hash = TRIB_CHECK_ADD(hash, ReadElfStruct<uint64_t>(memory_.piece(kName), layout_.walk.name_hash));
    return static_cast<uint32_t>(hash >> 32);
  }
  absl::StatusOr<std::shared_ptr<const RuntimeFunction>> Read() {
    return ReadPythonFunction(layout_, {kCodeType, kTextType, kBytesType}, memory_, {kCode, Check()});
  }
  absl::StatusCode Code() { return Read().status().code(); }

  const PythonLayout layout_ = testing::LayoutOf(11);
  testing::MemoryImage memory_;
};

TEST_F(CodeObjectTest, ReadsNameFileAndLines) {
  auto function = Read();
  ASSERT_TRUE(function.ok()) << function.status();
  EXPECT_EQ((*function)->name, "Loader.load");
  EXPECT_EQ((*function)->file, "/srv/app.py");
  EXPECT_EQ((*function)->first_line, 40u);
  EXPECT_EQ((*function)->LineAt(2), 40u);
  EXPECT_EQ((*function)->LineAt(4), 41u);
  EXPECT_FALSE((*function)->is_hidden);
  EXPECT_EQ(memory_.reads, 3u);
}

TEST_F(CodeObjectTest, RefusesAnotherObject) {
  EXPECT_EQ(ReadPythonFunction(layout_, {}, memory_, {kCode, Check() + 1}).status().code(),
            absl::StatusCode::kDataLoss);
  const uint32_t check = Check();
  Put(&memory_.piece(kName), layout_.walk.name_hash, uint64_t{0x4321});
  EXPECT_EQ(ReadPythonFunction(layout_, {}, memory_, {kCode, check}).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(CodeObjectTest, RefusesFreedObjectsAndOtherTypes) {
  Put(&memory_.piece(kCode), 0, uint64_t{0x7f0000009000});  // a link of the allocator's list of free blocks
  EXPECT_EQ(Code(), absl::StatusCode::kDataLoss);
  Put(&memory_.piece(kCode), 0, uint64_t{0});
  EXPECT_EQ(Code(), absl::StatusCode::kDataLoss);
  Put(&memory_.piece(kCode), 0, uint64_t{2});
  Put(&memory_.piece(kCode), layout_.type, kTextType);
  EXPECT_EQ(Code(), absl::StatusCode::kDataLoss);
  Put(&memory_.piece(kCode), layout_.type, kCodeType);
  Put(&memory_.piece(kFile), layout_.type, kBytesType);
  EXPECT_EQ(Code(), absl::StatusCode::kInvalidArgument);
}

// Immortal objects have counts with flags in the upper bits.
TEST_F(CodeObjectTest, ReadsImmortalObjects) {
  for (uint64_t references : {uint64_t{0xffffffff}, uint64_t{0xc0000000}, uint64_t{0x0004} << 48 | 0xc0000000}) {
    Put(&memory_.piece(kCode), 0, references);
    EXPECT_TRUE(Read().ok()) << std::hex << references;
  }
}

TEST_F(CodeObjectTest, RefusesImpossibleLinks) {
  for (uint64_t link : {uint64_t{0}, uint64_t{0x7f0000003001}, uint64_t{1} << 60, UINT64_MAX & ~uint64_t{7}}) {
    Put(&memory_.piece(kCode), layout_.code_filename, link);
    EXPECT_EQ(Code(), absl::StatusCode::kInvalidArgument) << link;
  }
  Put(&memory_.piece(kCode), layout_.code_filename, uint64_t{0x7f0000999000});
  EXPECT_EQ(Code(), absl::StatusCode::kDataLoss) << "nothing is mapped there";
  EXPECT_EQ(ReadPythonFunction(layout_, {}, memory_, {0, 0}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadPythonFunction(layout_, {}, memory_, {UINT64_MAX, 0}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(CodeObjectTest, BoundsWhatItReads) {
  Put(&memory_.piece(kQualifiedName), layout_.text_length, uint64_t{2} << 30);
  EXPECT_EQ(Code(), absl::StatusCode::kDataLoss) << "the text says more than there is";
  SetText(kQualifiedName, std::string(5000, 'x'));
  SetText(kFile, std::string(5000, 'y'));
  Put(&memory_.piece(kTable), layout_.bytes_size, uint64_t{200'000});
  memory_.piece(kTable) += std::string(200'000, '\x80');
  auto function = Read();
  ASSERT_TRUE(function.ok()) << function.status();
  EXPECT_EQ((*function)->name, std::string(kPythonNameBytesMax, 'x'));
  EXPECT_EQ((*function)->file, std::string(kPythonFileBytesMax, 'y'));
  EXPECT_EQ((*function)->LineAt(4), 41u);
  EXPECT_EQ((*function)->LineAt(190'000), 0u) << "behind the part of the table that was read";
  Put(&memory_.piece(kTable), layout_.bytes_size, uint64_t{1} << 63);
  EXPECT_EQ(Code(), absl::StatusCode::kInvalidArgument);
}

// Changes the memory before one of the reads.
class ChangingMemory : public ProcessMemory {
 public:
  ChangingMemory(testing::MemoryImage& image, size_t read, std::function<void()> change)
      : image_(image), read_(read), change_(std::move(change)) {}
  absl::Status Read(std::span<const Part> parts) override {
    if (image_.reads == read_) change_();
    return image_.Read(parts);
  }

 private:
  testing::MemoryImage& image_;
  const size_t read_;
  const std::function<void()> change_;
};

TEST_F(CodeObjectTest, RefusesObjectsThatChangeWhileTheyAreRead) {
  const std::function<void()> changes[] = {
      [&] { Put(&memory_.piece(kCode), layout_.code_first_line, uint32_t{41}); },
      [&] { Put(&memory_.piece(kCode), layout_.code_qualified_name, kName); },
      [&] { Put(&memory_.piece(kCode), layout_.type, kTextType); },
      [&] { SetText(kQualifiedName, "Another"); },
      [&] { Put(&memory_.piece(kTable), layout_.bytes_size, uint64_t{2}); },
  };
  const uint32_t check = Check();
  const testing::MemoryImage before = memory_;
  for (size_t i = 0; i < std::size(changes); ++i) {
    memory_ = before;
    ChangingMemory memory(memory_, 2, changes[i]);
    auto function = ReadPythonFunction(layout_, {kCodeType, kTextType, kBytesType}, memory, {kCode, check});
    EXPECT_EQ(function.status().code(), absl::StatusCode::kDataLoss) << i;
  }
}

TEST_F(CodeObjectTest, FollowsTextsThatAreNotCompact) {
  // A file's name of a class that is derived from str.
  std::string object = memory_.piece(kFile);
  object.resize(layout_.text_compact + 8u);
  Put(&object, layout_.type, uint64_t{0x7f0000008000});
  Put(&object, layout_.text_length, uint64_t{2});
  Put(&object, layout_.text_state, uint32_t{2 << 2});
  Put(&object, layout_.text_compact, uint64_t{0x7f0000007000});
  memory_.Set(kFile, object);
  memory_.Set(0x7f0000007000, std::string("\x36\x04\x60\x4f", 4));
  auto function = Read();
  ASSERT_TRUE(function.ok()) << function.status();
  EXPECT_EQ((*function)->file, "ж你");
}

TEST_F(CodeObjectTest, HidesTheHelperOfCalledClasses) {
  Put(&memory_.piece(kCode), layout_.code_filename, kName);
  Put(&memory_.piece(kCode), layout_.code_qualified_name, kName);
  auto function = Read();
  ASSERT_TRUE(function.ok());
  EXPECT_FALSE((*function)->is_hidden) << "it has lines";
  memory_.piece(kTable).replace(layout_.bytes_data, 5, "\xff\xff\xff\xff\xff");  // entries without a line
  function = Read();
  ASSERT_TRUE(function.ok());
  EXPECT_TRUE((*function)->is_hidden);
}

TEST_F(CodeObjectTest, NamesAnObjectWithoutAName) {
  SetText(kQualifiedName, "");
  auto function = Read();
  ASSERT_TRUE(function.ok());
  EXPECT_EQ((*function)->name, "<unnamed>");
}

}  // namespace
}  // namespace tributary
