#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernel-collector/probes/sample_record.h"

namespace tributary {

// Copies sample records out of their rings, so that they can be used later. The records of one poll are stored one
// after another in one vector of words. The vector is reused, so after some polls it needs no more allocations.
//   words: 1 if a trib_resume follows, else 0 · header · frames · chains · tail · [trib_resume · stack, padded to whole
//   words]

inline void StoreRecord(const SampleRecord& record, std::vector<uint64_t>* out) {
  auto append = [out](const void* from, size_t bytes) {
    if (bytes == 0) return;
    size_t at = out->size();
    out->resize(at + (bytes + 7) / 8);
    std::memcpy(out->data() + at, from, bytes);
  };
  out->push_back(record.resume != nullptr);
  append(record.sample, TRIB_SAMPLE_HEADER_BYTES);
  append(record.frames.data(), record.frames.size_bytes());
  append(record.chains.data(), record.chains.size_bytes());
  append(record.tail.data(), record.tail.size_bytes());
  if (record.resume == nullptr) return;
  append(record.resume, sizeof(trib_resume));
  append(record.stack.data(), record.stack.size());
}

// Returns the record that StoreRecord wrote at `words`. The result borrows `words`.
inline SampleRecord ViewRecord(const uint64_t* words) {
  SampleRecord record;
  const uint64_t* at = words + 1;
  record.sample = reinterpret_cast<const trib_sample*>(at);
  at += TRIB_SAMPLE_HEADER_BYTES / sizeof(uint64_t);
  record.frames = {at, size_t{record.sample->kernel_frames} + record.sample->user_frames};
  at += record.frames.size();
  record.chains = {at, record.sample->runtime_words};
  at += record.chains.size();
  record.tail = {at, static_cast<size_t>(std::popcount(record.sample->tail))};
  at += record.tail.size();
  if (words[0] == 0) return record;
  record.resume = reinterpret_cast<const trib_resume*>(at);
  record.stack = {reinterpret_cast<const uint8_t*>(at + sizeof(trib_resume) / sizeof(uint64_t)),
                  record.sample->stack_bytes};
  return record;
}

}  // namespace tributary
