#include "profile/dictionary.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace tributary {
namespace {

ExecutableId Id(char c) { return *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::string(20, c)); }

// InternStack returns the same nodes as interning frame by frame, in any order of the two, until the table is full.
TEST(Dictionary, InternStackEqualsFrameByFrame) {
  Dictionary whole({.nodes_max = 600, .frames_max = 100}), single({.nodes_max = 600, .frames_max = 100}),
      mixed({.nodes_max = 600, .frames_max = 100});
  std::mt19937_64 random(1);
  for (int i = 0; i < 2'000; ++i) {
    std::vector<Frame> frames(random() % 12);
    for (size_t depth = 0; depth < frames.size(); ++depth) {
      frames[depth] = {FrameKind::kNative, depth + 1 < frames.size(), ExecutableRef{},
                       8 * depth + random() % (1 + depth / 2)};
    }
    auto one_by_one = [&frames](Dictionary& dictionary) {
      NodeRef node;
      for (const Frame& frame : frames) node = dictionary.InternNode({node, dictionary.InternFrame(frame)});
      return node;
    };
    const NodeRef expected = one_by_one(single);
    ASSERT_EQ(whole.InternStack(frames), expected) << i;
    ASSERT_EQ(random() % 2 == 0 ? mixed.InternStack(frames) : one_by_one(mixed), expected) << i;
  }
  EXPECT_TRUE(single.full());
  EXPECT_EQ(single.node_count(), 600u);
  EXPECT_EQ(whole.rolling_hash(), single.rolling_hash());
  EXPECT_EQ(mixed.rolling_hash(), single.rolling_hash());
}

TEST(Dictionary, StartsWithNoneInEveryTable) {
  Dictionary d;
  EXPECT_EQ(d.string(StringRef{0}), "");
  EXPECT_EQ(d.node_count(), 1u);
  EXPECT_EQ(d.InternString(""), StringRef{0});
  EXPECT_EQ(d.InternExecutable(ExecutableId(), "x"), ExecutableRef{0});
  EXPECT_EQ(d.InternFrame(Frame()), FrameRef{0});
}

TEST(Dictionary, EqualDefinitionsShareAnId) {
  Dictionary d;
  ExecutableRef exe = d.InternExecutable(Id('a'), "/bin/a");
  EXPECT_EQ(d.InternExecutable(Id('a'), "/other/path"), exe);
  EXPECT_EQ(d.string(d.executable(exe).path), "/bin/a");
  Frame leaf{FrameKind::kNative, false, exe, 0x10};
  Frame caller{FrameKind::kNative, true, exe, 0x10};
  FrameRef f = d.InternFrame(leaf);
  EXPECT_EQ(d.InternFrame(leaf), f);
  EXPECT_NE(d.InternFrame(caller), f);
  NodeRef n = d.InternNode({NodeRef{0}, f});
  EXPECT_EQ(d.InternNode({NodeRef{0}, f}), n);
  EXPECT_NE(d.InternNode({n, f}), n);  // recursion: the same frame under itself is another node
}

TEST(Dictionary, AProcessThatChangesIsANewDefinition) {
  Dictionary d;
  Process p{.key = {Pid{7}, 100, 0}, .comm = d.InternString("sh")};
  ProcessRef first = d.InternProcess(p);
  EXPECT_EQ(d.InternProcess(p), first);
  p.container_id = d.InternString("abc");
  ProcessRef second = d.InternProcess(p);
  EXPECT_NE(second, first);
  EXPECT_EQ(d.InternProcess(p), second);
}

TEST(Dictionary, RefusesUndefinedReferences) {
  Dictionary d;
  EXPECT_FALSE(d.Append(Node{NodeRef{1}, FrameRef{0}}));
  EXPECT_FALSE(d.Append(Node{NodeRef{0}, FrameRef{1}}));
  EXPECT_FALSE(d.Append(Frame{FrameKind::kNative, false, ExecutableRef{1}, 0}));
  EXPECT_FALSE(d.Append(Executable{Id('a'), StringRef{1}}));
  EXPECT_FALSE(d.Append(Thread{ProcessRef{1}, Tid{1}, StringRef{0}}));
  EXPECT_FALSE(d.Append(Process{.key = {}, .comm = StringRef{5}}));
  EXPECT_EQ(d.node_count(), 1u);
  EXPECT_EQ(d.frame_count(), 1u);
}

TEST(Dictionary, RefusesNodesWhenFull) {
  Dictionary d({.nodes_max = 4});
  NodeRef last;
  for (uint64_t i = 0; i < 3; ++i) {
    last = d.InternNode({NodeRef{0}, d.InternFrame(Frame{FrameKind::kUnknown, false, {}, i + 1})});
    EXPECT_NE(last, NodeRef{0});
  }
  EXPECT_TRUE(d.full());
  EXPECT_EQ(d.InternNode({last, FrameRef{1}}), NodeRef{0});
  EXPECT_EQ(d.node_count(), 4u);
}

TEST(Dictionary, CutsLongStrings) {
  Dictionary d({.string_bytes_max = 4});
  EXPECT_EQ(d.string(d.InternString("abcdef")), "abcd");
  EXPECT_FALSE(d.Append("abcdef"));
}

// Replaying the definitions in order gives an equal dictionary with an equal hash. Both ends of a session rely on this.
TEST(Dictionary, AppendingInOrderGivesAnEqualDictionary) {
  std::mt19937_64 random(42);
  Dictionary a;
  for (int i = 0; i < 2000; ++i) {
    ExecutableRef exe =
        a.InternExecutable(Id(static_cast<char>('a' + random() % 20)), "p" + std::to_string(random() % 9));
    FrameRef frame = a.InternFrame({FrameKind::kNative, random() % 2 == 0, exe, random() % 64});
    a.InternNode({NodeRef{static_cast<uint32_t>(random() % a.node_count())}, frame});
  }
  Dictionary b;
  for (uint32_t i = 1; i < a.string_count(); ++i) ASSERT_TRUE(b.Append(a.string(StringRef{i})));
  for (uint32_t i = 1; i < a.executable_count(); ++i) ASSERT_TRUE(b.Append(a.executable(ExecutableRef{i})));
  for (uint32_t i = 1; i < a.frame_count(); ++i) ASSERT_TRUE(b.Append(a.frame(FrameRef{i})));
  for (uint32_t i = 1; i < a.node_count(); ++i) ASSERT_TRUE(b.Append(a.node(NodeRef{i})));
  EXPECT_EQ(a.rolling_hash(), b.rolling_hash());
  for (uint32_t i = 1; i < a.node_count(); ++i) {
    EXPECT_EQ(b.InternNode(a.node(NodeRef{i})), NodeRef{i});
    EXPECT_LT(a.node(NodeRef{i}).parent.value, i);
  }
  EXPECT_EQ(a.node_count(), b.node_count());
}

}  // namespace
}  // namespace tributary
