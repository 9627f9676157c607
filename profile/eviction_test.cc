#include "profile/eviction.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace tributary {
namespace {

ExecutableId Id(uint64_t n) {
  std::string bytes = std::to_string(n);
  bytes.resize(20, 'x');
  return *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, bytes);
}

// Returns a stack as text that does not depend on ids.
std::string Describe(const Dictionary& d, NodeRef node) {
  std::string out;
  for (; node.value != 0; node = d.node(node).parent) {
    const Frame& frame = d.frame(d.node(node).frame);
    const Executable& executable = d.executable(frame.executable);
    out += std::string(executable.id.view()) + "@" + std::string(d.string(executable.path)) + "+" +
           std::to_string(frame.address) + ";";
  }
  return out;
}

std::string Describe(const Dictionary& d, ThreadRef ref) {
  const Thread& thread = d.thread(ref);
  const Process& process = d.process(thread.process);
  return std::to_string(thread.tid.value) + std::string(d.string(thread.name)) + "/" +
         std::to_string(process.key.pid.value) + std::string(d.string(process.comm)) +
         std::string(d.string(process.container_id)) + std::string(d.executable(process.executable).id.view());
}

struct Machine {
  explicit Machine(uint64_t seed, DictionaryLimits limits)
      : random(seed), dictionary(std::make_shared<Dictionary>(limits)) {}

  void Sample() {
    const uint64_t program = random() % 6;
    ExecutableRef exe = dictionary->InternExecutable(Id(program), "/bin/" + std::to_string(program));
    NodeRef node;
    for (uint64_t depth = 1 + random() % 5; depth > 0; --depth) {
      node = dictionary->InternNode(
          {node, dictionary->InternFrame({FrameKind::kNative, false, exe, random() % 7 + 10 * program})});
    }
    Process process{.key = {Pid{static_cast<int32_t>(program)}, 5, 0}, .comm = dictionary->InternString("comm")};
    if (random() % 2 == 0) process.container_id = dictionary->InternString("c" + std::to_string(program));
    process.executable = exe;
    const ThreadRef thread =
        dictionary->InternThread({dictionary->InternProcess(process), Tid{static_cast<int32_t>(random() % 9)},
                                  dictionary->InternString("name")});
    dictionary->Use(node);
    dictionary->Use(thread);
  }

  std::mt19937_64 random;
  std::shared_ptr<Dictionary> dictionary;
};

TEST(Eviction, KeepsNewestNodesAndTheirReferences) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Machine machine(seed, {.nodes_max = 300, .threads_max = 60});
    for (uint32_t now = 1; machine.dictionary->node_count() < 250 && now < 400; ++now) {
      machine.dictionary->SetNow(now);
      for (int i = 0; i < 3; ++i) machine.Sample();
    }
    const std::shared_ptr<Dictionary> before = machine.dictionary, after = EvictOldest(before);
    ASSERT_NE(after->derivation(), nullptr);
    EXPECT_EQ(after->derivation()->from.lock(), before);
    const Eviction& eviction = after->derivation()->eviction;
    EXPECT_EQ(eviction.nodes.before(), before->node_count());
    EXPECT_EQ(after->node_count(), before->node_count() - before->node_count() / 4);
    EXPECT_FALSE(after->full());
    const std::vector<uint32_t> nodes = eviction.nodes.NewIds(), threads = eviction.threads.NewIds();
    uint32_t oldest_kept = UINT32_MAX, newest_dropped = 0;
    for (uint32_t i = 1; i < nodes.size(); ++i) {
      // Only leaves are compared, because an inner node counts as used with its newest leaf.
      if (nodes[i] == 0) newest_dropped = std::max(newest_dropped, before->node_uses()[i]);
      if (nodes[i] != 0) {
        EXPECT_EQ(Describe(*before, NodeRef{i}), Describe(*after, NodeRef{nodes[i]}));
      }
    }
    std::vector<bool> inner(nodes.size());
    for (uint32_t i = 1; i < nodes.size(); ++i) inner[before->node(NodeRef{i}).parent.value] = true;
    for (uint32_t i = 1; i < nodes.size(); ++i) {
      if (nodes[i] != 0 && !inner[i]) oldest_kept = std::min(oldest_kept, before->node_uses()[i]);
    }
    EXPECT_GE(oldest_kept, newest_dropped);
    for (uint32_t i = 1; i < threads.size(); ++i) {
      if (threads[i] != 0) {
        EXPECT_EQ(Describe(*before, ThreadRef{i}), Describe(*after, ThreadRef{threads[i]}));
      }
    }
    // Kept nodes are found again by their contents. New nodes are appended.
    for (uint32_t i = 1; i < after->node_count(); ++i)
      EXPECT_EQ(after->InternNode(after->node(NodeRef{i})), NodeRef{i});
    machine.dictionary = after;
    for (int i = 0; i < 50; ++i) machine.Sample();
  }
}

TEST(Eviction, DropsUnreferencedDefinitions) {
  auto d = std::make_shared<Dictionary>(DictionaryLimits{.nodes_max = 8});
  for (uint64_t i = 1; i <= 7; ++i) {
    d->SetNow(static_cast<uint32_t>(i));
    const ExecutableRef exe = d->InternExecutable(Id(i), "/bin/" + std::to_string(i));
    d->InternNode({NodeRef{}, d->InternFrame({FrameKind::kNative, false, exe, i})});
  }
  const auto after = EvictOldest(d);
  EXPECT_EQ(after->node_count(), 6u);
  EXPECT_EQ(after->frame_count(), 6u);
  EXPECT_EQ(after->executable_count(), 6u);
  EXPECT_EQ(after->string_count(), 6u);
  EXPECT_EQ(after->string(StringRef{1}), "/bin/3");
}

TEST(Eviction, KeepsHalfEmptyTablesWhole) {
  auto d = std::make_shared<Dictionary>(DictionaryLimits{.nodes_max = 100, .threads_max = 4});
  for (uint64_t i = 1; i <= 20; ++i) d->InternNode({NodeRef{}, d->InternFrame({FrameKind::kUnknown, false, {}, i})});
  for (int32_t i = 1; i <= 3; ++i) {
    d->SetNow(static_cast<uint32_t>(i));
    d->InternThread({d->InternProcess({.key = {Pid{i}, 1, 0}}), Tid{i}, StringRef{}});
  }
  const auto after = EvictOldest(d);
  EXPECT_EQ(after->node_count(), 21u);
  EXPECT_EQ(after->thread_count(), 3u);
  EXPECT_EQ(after->process_count(), 3u);
  EXPECT_EQ(after->thread(ThreadRef{1}).tid, Tid{2});
}

TEST(Eviction, DropsHigherIdsOfEquallyOldNodes) {
  auto d = std::make_shared<Dictionary>(DictionaryLimits{.nodes_max = 8});
  NodeRef node;
  for (uint64_t i = 1; i <= 7; ++i) node = d->InternNode({node, d->InternFrame({FrameKind::kUnknown, false, {}, i})});
  const auto after = EvictOldest(d);
  EXPECT_EQ(after->derivation()->eviction.nodes.runs(), (std::vector<uint32_t>{5, 2}));
}

TEST(Eviction, RefusesForeignEvictionsThatDoNotFit) {
  auto d = std::make_shared<Dictionary>();
  const ExecutableRef exe = d->InternExecutable(Id(1), "/bin/1");
  const NodeRef parent = d->InternNode({NodeRef{}, d->InternFrame({FrameKind::kNative, false, exe, 1})});
  d->InternNode({parent, FrameRef{1}});
  const auto all = [](uint32_t count) { return KeptIds::FromMarks(std::vector<bool>(count, true)); };
  const Eviction ok{all(2), all(2), all(2), KeptIds::FromMarks({true, true, false}), all(1), all(1)};
  ASSERT_NE(EvictedFrom(d, ok), nullptr);
  EXPECT_EQ(EvictedFrom(d, ok)->node_count(), 2u);
  Eviction orphan = ok, nameless = ok, frameless = ok, other = ok;
  orphan.nodes = KeptIds::FromMarks({true, false, true});
  nameless.strings = KeptIds::FromMarks({true, false});
  frameless.frames = KeptIds::FromMarks({true, false});
  other.threads = all(2);
  for (const Eviction& eviction : {orphan, nameless, frameless, other}) EXPECT_EQ(EvictedFrom(d, eviction), nullptr);
}

TEST(Eviction, AProcessKeepsItsNewestDefinition) {
  auto d = std::make_shared<Dictionary>(DictionaryLimits{.threads_max = 4});
  d->InternThread({ProcessRef{}, Tid{9}, StringRef{}});
  d->SetNow(1);
  Process process{.key = {Pid{7}, 1, 0}};
  d->InternThread({d->InternProcess(process), Tid{7}, StringRef{}});
  process.container_id = d->InternString("late");
  d->InternProcess(process);
  const auto after = EvictOldest(d);
  ASSERT_EQ(after->process_count(), 3u);
  EXPECT_EQ(after->NewestProcess(ProcessRef{1}), ProcessRef{2});
  EXPECT_EQ(after->string(after->process(ProcessRef{2}).container_id), "late");
}

}  // namespace
}  // namespace tributary
