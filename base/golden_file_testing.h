#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace tributary {

// Expects that the file `path`, which is in the repository, has the contents `bytes`. If the environment variable
// UPDATE_GOLDEN is set, first writes `bytes` to the file.
inline void ExpectFile(const std::filesystem::path& path, const std::string& bytes) {
  if (getenv("UPDATE_GOLDEN") != nullptr) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
  }
  std::ifstream file(path, std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), bytes) << path;
}

}  // namespace tributary
