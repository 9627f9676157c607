#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

// Builds perf records as the kernel writes them, for tests.

namespace tributary {

class RecordBuilder {
 public:
  RecordBuilder(uint32_t type, uint16_t misc = 0) : bytes_(sizeof(perf_event_header)) {
    header_.type = type;
    header_.misc = misc;
  }
  template <typename T>
  RecordBuilder& Add(T value) {
    auto* begin = reinterpret_cast<const uint8_t*>(&value);
    bytes_.insert(bytes_.end(), begin, begin + sizeof(value));
    return *this;
  }
  // Adds the text with its NUL, padded to eight bytes.
  RecordBuilder& AddString(std::string_view text) {
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    do bytes_.push_back(0);
    while (bytes_.size() % 8 != 0);
    return *this;
  }
  // Adds the sample_id fields and the header.
  std::vector<uint8_t> Build(int64_t time_ns) {
    Add<uint32_t>(0).Add<uint32_t>(0).Add(time_ns).Add<uint32_t>(0).Add<uint32_t>(0);
    header_.size = static_cast<uint16_t>(bytes_.size());
    memcpy(bytes_.data(), &header_, sizeof(header_));
    return bytes_;
  }

 private:
  perf_event_header header_ = {};
  std::vector<uint8_t> bytes_;
};

inline std::vector<uint8_t> CommRecord(std::string_view comm, int64_t time_ns, int32_t pid = 1) {
  return RecordBuilder(PERF_RECORD_COMM).Add(pid).Add(pid).AddString(comm).Build(time_ns);
}

struct MmapSpec {
  uint64_t start = 0x1000, length = 0x2000, file_offset = 0x3000;
  uint32_t protection = 5;  // PROT_READ | PROT_EXEC
  std::string path = "/usr/lib/libx.so";
};

// The record has the build-id 01 02 03 … of `size` bytes.
inline std::vector<uint8_t> MmapRecordWithBuildId(const MmapSpec& spec, uint8_t size, int64_t time_ns) {
  RecordBuilder builder(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID);
  builder.Add<uint32_t>(42).Add<uint32_t>(43).Add(spec.start).Add(spec.length).Add(spec.file_offset);
  builder.Add<uint32_t>(size);
  for (uint8_t i = 1; i <= 20; ++i) builder.Add(i);
  return builder.Add(spec.protection).Add<uint32_t>(2).AddString(spec.path).Build(time_ns);
}

inline std::vector<uint8_t> MmapRecordWithInode(const MmapSpec& spec, int64_t time_ns) {
  RecordBuilder builder(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);
  builder.Add<uint32_t>(42).Add<uint32_t>(43).Add(spec.start).Add(spec.length).Add(spec.file_offset);
  builder.Add<uint32_t>(8).Add<uint32_t>(1).Add<uint64_t>(1234).Add<uint64_t>(77);
  return builder.Add(spec.protection).Add<uint32_t>(2).AddString(spec.path).Build(time_ns);
}

inline std::vector<uint8_t> KsymbolRecord(uint64_t start, uint32_t length, uint16_t type, uint16_t flags,
                                          std::string_view name, int64_t time_ns) {
  return RecordBuilder(PERF_RECORD_KSYMBOL).Add(start).Add(length).Add(type).Add(flags).AddString(name).Build(time_ns);
}

}  // namespace tributary
