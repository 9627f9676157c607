#include <gtest/gtest.h>

#include <memory>

#include "intake/codec/codec_testing.h"
#include "profile/eviction.h"

// The limit on the number of frames of a stack (DictionaryLimits::stack_depth_max).

namespace tributary::intake {
namespace {

constexpr uint32_t kDepthMax = DictionaryLimits().stack_depth_max;

// Adds `frames` recursive calls under `node`. Returns the innermost one.
NodeRef Recurse(Dictionary& dictionary, NodeRef node, uint32_t frames) {
  for (uint32_t i = 0; i < frames; ++i) node = dictionary.InternNode({node, FrameRef{1}});
  return node;
}

class StackDepth : public testing::Test {
 protected:
  StackDepth() { dictionary_->InternFrame({FrameKind::kNative, true, {}, 0x10}); }
  // Sends what was added to the dictionary. Returns the decoder's answer.
  absl::Status Send() {
    const std::vector<std::string> frames = encoder_.Encode({.sequence = ++sequence_, .dictionary = dictionary_});
    EXPECT_EQ(frames.size(), 1u);
    const Frame frame = Unframe(frames.back());
    wire_bytes_ = frames.back().size();
    return decoder_.Decode(frame.type, frame.sequence, frame.payload).status();
  }

  std::shared_ptr<Dictionary> dictionary_ = std::make_shared<Dictionary>(DictionaryLimits{.nodes_max = 131'072});
  BatchEncoder encoder_{1};
  BatchDecoder decoder_{1};
  uint64_t sequence_ = 0;
  size_t wire_bytes_ = 0;
};

TEST_F(StackDepth, TheLimitIsAllowed) {
  Recurse(*dictionary_, NodeRef{}, kDepthMax);
  EXPECT_TRUE(Send().ok());
  EXPECT_EQ(decoder_.have().nodes, kDepthMax + 1);
}

TEST_F(StackDepth, OneFrameMoreIsMalformed) {
  Recurse(*dictionary_, NodeRef{}, kDepthMax + 1);
  EXPECT_EQ(Send().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(decoder_.have(), DictionaryCounts{});
}

// A packed chain takes few bytes whatever its length: without the limit, it fills the store's trie.
TEST_F(StackDepth, AChainOf131000FramesIsMalformed) {
  Recurse(*dictionary_, NodeRef{}, 131'000);
  EXPECT_EQ(Send().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_LT(wire_bytes_, 300u);
}

TEST_F(StackDepth, CountsTheFramesOfEarlierMessages) {
  const NodeRef deep = Recurse(*dictionary_, NodeRef{}, kDepthMax - 1);
  ASSERT_TRUE(Send().ok());
  const NodeRef deepest = Recurse(*dictionary_, deep, 1);
  ASSERT_TRUE(Send().ok());
  Recurse(*dictionary_, NodeRef{}, 7);
  ASSERT_TRUE(Send().ok()) << "a chain that is there already";
  dictionary_->InternNode({deepest, FrameRef{0}});
  EXPECT_EQ(Send().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(StackDepth, CountsTheFramesThatStayAfterAnUndo) {
  const NodeRef deep = Recurse(*dictionary_, NodeRef{}, kDepthMax - 1);
  ASSERT_TRUE(Send().ok());
  const NodeRef deepest = Recurse(*dictionary_, deep, 1);
  BatchEncoder again = encoder_;
  ASSERT_TRUE(Send().ok());
  decoder_.Undo();
  encoder_ = again;
  ASSERT_TRUE(Send().ok());
  Recurse(*dictionary_, deepest, 1);
  EXPECT_EQ(Send().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(StackDepth, CountsTheFramesThatAnEvictionKeeps) {
  for (const uint32_t more : {24, 25}) {
    auto full = std::make_shared<Dictionary>(DictionaryLimits{.nodes_max = 2000});
    for (uint64_t i = 0; i < 500; ++i) full->InternNode({NodeRef{}, full->InternFrame({.address = 0x1000 + i})});
    full->SetNow(1);
    Recurse(*full, NodeRef{1}, kDepthMax - 25);
    dictionary_ = full;
    encoder_ = BatchEncoder(1);
    decoder_ = BatchDecoder(1);
    ASSERT_TRUE(Send().ok());
    dictionary_ = EvictOldest(full);
    NodeRef deepest{dictionary_->node_count() - 1};
    Recurse(*dictionary_, deepest, more);
    encoder_ = BatchEncoder::Following(2, &encoder_, *dictionary_);
    EXPECT_EQ(Send().code(), more == 24 ? absl::StatusCode::kOk : absl::StatusCode::kInvalidArgument);
    EXPECT_LT(dictionary_->node_count(), full->node_count());
  }
}

}  // namespace
}  // namespace tributary::intake
