#pragma once

#include <cstdint>
#include <span>

#include "bpf/include/records.h"

namespace tributary {

// The sample that `bytes` hold, or null when its frame counts do not fill them exactly. `bytes` are aligned to 8 and
// outlive what is returned.
inline const trib_sample* CheckSampleRecord(std::span<const uint8_t> bytes) {
  if (bytes.size() < TRIB_SAMPLE_HEADER_BYTES) return nullptr;
  auto* sample = reinterpret_cast<const trib_sample*>(bytes.data());
  if (sample->kernel_frames > TRIB_KERNEL_FRAMES_MAX || sample->user_frames > TRIB_USER_FRAMES_MAX) return nullptr;
  size_t frames = size_t{sample->kernel_frames} + sample->user_frames;
  return bytes.size() == TRIB_SAMPLE_HEADER_BYTES + 8 * frames ? sample : nullptr;
}

}  // namespace tributary
