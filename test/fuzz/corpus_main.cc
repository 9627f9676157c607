#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

// Runs a fuzz target once on each file of the given folders: the committed corpus as an ordinary test. A folder without
// files is a failure, because a missing corpus proves nothing.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// For targets with their own mutators. Here it changes nothing.
extern "C" size_t LLVMFuzzerMutate(uint8_t*, size_t size, size_t) { return size; }

int main(int argc, char** argv) {
  size_t files = 0;
  for (int i = 1; i < argc; ++i) {
    std::error_code error;
    size_t before = files;
    for (const auto& entry : std::filesystem::directory_iterator(argv[i], error)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      // The vector has exactly the file's size, so that a sanitizer detects a read past its end.
      std::vector<uint8_t> bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
      bytes.shrink_to_fit();
      LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
      ++files;
    }
    if (error || files == before) {
      fprintf(stderr, "%s: no corpus there\n", argv[i]);
      return 1;
    }
  }
  printf("%zu inputs\n", files);
  return files == 0 ? 1 : 0;
}
