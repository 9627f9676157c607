#include "base/memory_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace tributary {
namespace {

TEST(MemoryFile, ReadsAppendedBytes) {
  auto file = MemoryFile::Create("test");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->Append("").ok());
  ASSERT_TRUE(file->Append("some bytes").ok());
  ASSERT_TRUE(file->Append(" and more").ok());
  EXPECT_EQ(file->size(), 19u);
  EXPECT_EQ(*file->Read(5, 9), "bytes and");
  EXPECT_EQ(*file->Read(19, 0), "");
  const Fd fd = std::move(*file).TakeDescriptor();
  char first[4];
  EXPECT_EQ(pread(fd.get(), first, sizeof(first), 0), 4);
  EXPECT_EQ(std::string(first, 4), "some");
}

}  // namespace
}  // namespace tributary
