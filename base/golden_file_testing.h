#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace tributary {

// Expects that a committed file equals the bytes that the code makes today. UPDATE_GOLDEN=1 writes the file.
inline void ExpectFile(const std::filesystem::path& path, const std::string& bytes) {
  if (getenv("UPDATE_GOLDEN") != nullptr) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
  }
  std::ifstream file(path, std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), bytes) << path;
}

}  // namespace tributary
