#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "intake/codec/codec_testing.h"

// Frames of interpreters, for reducers that know their kind and for others.

namespace tributary::intake {
namespace {

// Defines a stack of Python: native code, the interpreter, a Python function, the interpreter again.
Batch PythonBatch(uint64_t sequence, const std::shared_ptr<Dictionary>& dictionary) {
  const ExecutableRef file = dictionary->InternExecutable({}, "/usr/bin/python3");
  NodeRef last;
  for (const FrameKind kind : {FrameKind::kNative, FrameKind::kInterpreter, FrameKind::kPython, FrameKind::kInterpreter,
                               FrameKind::kInterpreter, FrameKind::kNative}) {
    const tributary::Frame frame{
        .kind = kind, .executable = file, .address = 0x1000 * sequence + dictionary->frame_count()};
    last = dictionary->InternNode({last, dictionary->InternFrame(frame)});
  }
  return {.sequence = sequence, .dictionary = dictionary};
}

std::vector<FrameKind> KindsAfterDecoding(bool knows_interpreters) {
  auto dictionary = std::make_shared<Dictionary>();
  BatchEncoder encoder(1);
  encoder.set_knows_interpreters(knows_interpreters);
  BatchDecoder decoder(1);
  Dictionary decoded;
  for (uint64_t sequence = 1; sequence <= 2; ++sequence) {
    const IncomingBatch batch = DecodeAll(encoder.Encode(PythonBatch(sequence, dictionary)), decoder, decoded);
    EXPECT_EQ(batch.nodes_hash, decoded.rolling_hash());
    EXPECT_EQ(batch.unknown_values, 0u);
  }
  EXPECT_EQ(decoded.counts(), dictionary->counts());
  std::vector<FrameKind> kinds;
  for (uint32_t i = 1; i < decoded.frame_count(); ++i) {
    EXPECT_EQ(decoded.frame(FrameRef{i}).address, dictionary->frame(FrameRef{i}).address);
    kinds.push_back(decoded.frame(FrameRef{i}).kind);
  }
  return kinds;
}

TEST(InterpreterFrames, AreNativeForReducersOfEarlierReleases) {
  using enum FrameKind;
  const std::vector<FrameKind> one = {kNative, kInterpreter, kPython, kInterpreter, kInterpreter, kNative};
  std::vector<FrameKind> known = one, unknown;
  known.insert(known.end(), one.begin(), one.end());
  for (const FrameKind kind : known) unknown.push_back(kind == kInterpreter ? kNative : kind);
  EXPECT_EQ(KindsAfterDecoding(true), known);
  EXPECT_EQ(KindsAfterDecoding(false), unknown);
}

}  // namespace
}  // namespace tributary::intake
