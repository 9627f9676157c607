#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "intake/codec/batch_decoder.h"
#include "intake/codec/batch_encoder.h"
#include "intake/wire/frame.h"
#include "profile/dictionary.h"

// Helpers for the tests of the codec.

namespace tributary::intake {

inline Frame Unframe(std::string_view bytes) {
  FrameDecoder decoder;
  decoder.Append(bytes);
  Frame frame;
  auto got = decoder.Next(&frame);
  EXPECT_TRUE(got.ok() && *got) << got.status();
  return frame;
}

inline std::vector<Sample> Rounded(std::vector<Sample> samples) {
  std::stable_sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) { return a.time < b.time; });
  for (Sample& sample : samples) sample.time = RoundToWire(sample.time);
  return samples;
}

// Decodes the frames of one batch, appends its definitions to `dictionary`, and returns the batch.
inline IncomingBatch DecodeAll(const std::vector<std::string>& frames, BatchDecoder& decoder, Dictionary& dictionary) {
  IncomingBatch batch;
  for (size_t i = 0; i < frames.size(); ++i) {
    const Frame frame = Unframe(frames[i]);
    EXPECT_EQ(frame.type, i + 1 < frames.size() ? MessageType::kDefinitions : MessageType::kBatch);
    auto decoded = decoder.Decode(frame.type, frame.sequence, frame.payload);
    EXPECT_TRUE(decoded.ok()) << decoded.status();
    if (!decoded.ok()) return batch;
    EXPECT_TRUE(dictionary.Append(decoded->definitions));
    EXPECT_EQ(decoder.have(), dictionary.counts());
    batch = *std::move(decoded);
  }
  return batch;
}

}  // namespace tributary::intake
