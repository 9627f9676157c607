#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <span>

#include "bpf/include/records.h"
#include "profile/sample_types.h"

namespace tributary {

// A sample from one of the two rings (bpf/include/records.h), after a check: all data that its header declares is
// within the record. All members borrow the record's bytes, which must be aligned to 8 bytes.
struct SampleRecord {
  const trib_sample* sample = nullptr;
  std::span<const uint64_t> frames;     // kernel_frames, then user_frames
  std::span<const uint64_t> chains;     // of language runtimes: see RuntimeChains (runtime_chain.h)
  const trib_resume* resume = nullptr;  // null: no copy of the stack
  std::span<const uint8_t> stack;       // from resume->sp upwards
  std::span<const uint64_t> tail;       // a word for each bit of sample->tail

  std::span<const uint64_t> kernel() const { return frames.first(sample->kernel_frames); }
  std::span<const uint64_t> user() const { return frames.subspan(sample->kernel_frames); }
  SampleType type() const { return static_cast<SampleType>(sample->type); }
  // Returns the word of the tail that belongs to `bit` of sample->tail; nullopt if the bit is not set.
  std::optional<uint64_t> TailWord(unsigned bit) const {
    if ((sample->tail >> bit & 1) == 0) return std::nullopt;
    return tail[std::popcount(sample->tail & ((1u << bit) - 1))];
  }

  // Reads a record of the ring trib_samples. Returns nullopt if it is malformed: header, frames, chains and tail
  // must fill `bytes` exactly.
  static std::optional<SampleRecord> FromSample(std::span<const uint8_t> bytes) {
    std::optional<SampleRecord> record = Header(bytes);
    if (!record || bytes.size() != TRIB_SAMPLE_HEADER_BYTES + 8 * record->words()) return std::nullopt;
    return record->sample->stack_bytes == 0 ? record : std::nullopt;
  }
  // Reads a record of the ring trib_copies. Returns nullopt if it is malformed: it must have one of the three sizes of
  // a copy, and its stack must fit in it.
  static std::optional<SampleRecord> FromCopy(std::span<const uint8_t> bytes) {
    if (bytes.size() < TRIB_COPY_HEADER_BYTES) return std::nullopt;
    size_t room = bytes.size() - TRIB_COPY_HEADER_BYTES;
    if (room != TRIB_COPY_BYTES_SMALL && room != TRIB_COPY_BYTES_MEDIUM && room != TRIB_COPY_BYTES_LARGE) {
      return std::nullopt;
    }
    std::optional<SampleRecord> record = Header(bytes);
    if (!record || record->words() > TRIB_COPY_WORDS_MAX || record->sample->stack_bytes > room) return std::nullopt;
    record->resume = reinterpret_cast<const trib_resume*>(bytes.data() + TRIB_COPY_SAMPLE_BYTES);
    record->stack = bytes.subspan(TRIB_COPY_HEADER_BYTES, record->sample->stack_bytes);
    return record;
  }

  // Returns the sample type in the header of a malformed record; kCpu if the type is unknown.
  static SampleType TypeOf(std::span<const uint8_t> bytes) {
    if (bytes.size() < TRIB_SAMPLE_HEADER_BYTES) return SampleType::kCpu;
    const auto type = static_cast<SampleType>(reinterpret_cast<const trib_sample*>(bytes.data())->type);
    return FindSampleType(type) != nullptr ? type : SampleType::kCpu;
  }

 private:
  size_t words() const { return frames.size() + chains.size() + tail.size(); }
  static std::optional<SampleRecord> Header(std::span<const uint8_t> bytes) {
    if (bytes.size() < TRIB_SAMPLE_HEADER_BYTES) return std::nullopt;
    SampleRecord record;
    record.sample = reinterpret_cast<const trib_sample*>(bytes.data());
    size_t kernel = record.sample->kernel_frames, user = record.sample->user_frames;
    const size_t chains = record.sample->runtime_words;
    const auto tail = static_cast<size_t>(std::popcount(record.sample->tail));
    const size_t words = kernel + user + chains + tail;
    if (FindSampleType(record.type()) == nullptr || kernel > TRIB_KERNEL_FRAMES_MAX || user > TRIB_USER_FRAMES_MAX ||
        record.sample->stop >= TRIB_STOP_COUNT || words > TRIB_SAMPLE_WORDS_MAX ||
        bytes.size() < TRIB_SAMPLE_HEADER_BYTES + 8 * words) {
      return std::nullopt;
    }
    const std::span all(reinterpret_cast<const uint64_t*>(bytes.data() + TRIB_SAMPLE_HEADER_BYTES), words);
    record.frames = all.first(kernel + user);
    record.chains = all.subspan(kernel + user, chains);
    record.tail = all.last(tail);
    return record;
  }
};

}  // namespace tributary
