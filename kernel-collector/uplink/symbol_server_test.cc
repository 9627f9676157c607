#include "kernel-collector/uplink/symbol_server.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>

#include "base/child_process_testing.h"
#include "base/socket_message.h"
#include "base/zstd.h"
#include "kernel-collector/processes/code_file_reader.h"
#include "kernel-collector/processes/fakes_testing.h"
#include "kernel-collector/uplink/symbol_maker_process.h"
#include "symbols/symbol_codec.h"

namespace tributary {
namespace {

class SymbolServerTest : public ::testing::Test {
 protected:
  SymbolServerTest() {
    server.SetKernel(Kernel());
    FakeProc::Write(proc.proc() + "/kallsyms",
                    "0000000000001000 T _stext\n0000000000001100 t work\n0000000000003000 T _etext\n"
                    "0000000000009010 t mod_work\t[mod]\n");
    proc.AddProcess(42, {});
  }
  static std::shared_ptr<const KernelLayout> Kernel() {
    KernelLayout kernel{.id = BuildId("kernel"), .text_begin = 0x1000, .text_end = 0x3000};
    kernel.modules = {{"mod", 0x9000, 0x1000, BuildId("mod")}};
    return std::make_shared<const KernelLayout>(std::move(kernel));
  }
  // Adds this test's own executable as a file that process 42 has mapped.
  ExecutableId MapSelf() {
    std::ifstream file("/proc/self/exe", std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    proc.AddFile("/bin/self", bytes);
    const ExecutableId id = (*ElfFile::FromMemory(bytes))->Identity().value();
    files.Intern(FileKey{.build_id = id}, {Pid{42}, 0x1000, 0x2000, "/bin/self"});
    return id;
  }
  // Returns the answer to one request: a decoded table, or null and an entry in `reasons`.
  std::shared_ptr<const SymbolTable> Ask(const ExecutableId& id) { return Ask(id, server); }
  std::shared_ptr<const SymbolTable> Ask(const ExecutableId& id, SymbolServer& of) {
    of.Request(id);
    executor.RunAll();
    auto table = tables.find(id);
    if (table == tables.end()) return nullptr;
    // For this node, tables are flat.
    auto decoded = SymbolTable::FromBytes(table->second);
    if (!decoded.ok()) decoded = DecodeSymbolTable(table->second);
    EXPECT_TRUE(decoded.ok()) << decoded.status();
    return decoded.ok() ? *decoded : nullptr;
  }

  SymbolServer::Callbacks Callbacks() {
    return {[this](const ExecutableId& id, PackedTable table) {
              ++sent;
              tables[id] = ZstdDecompress(table.Read(0, table.stored_bytes()).value(), table.raw_bytes()).value();
            },
            [this](const ExecutableId& id, const absl::Status& why) { reasons[id] = std::string(why.message()); },
            [this](const ExecutableId& id) { return id == named ? "bpf_prog_1_x" : std::string(); },
            [this](const ExecutableId& id, const absl::StatusOr<SymbolDigest>& digest) {
              digests.emplace_back(id, digest);
            }};
  }

  FakeProc proc;
  FakeClock clock;
  Metrics metrics;
  FakeExecutor executor;
  CodeFileTable files{metrics};
  std::map<ExecutableId, std::string> tables, reasons;
  std::vector<std::pair<ExecutableId, absl::StatusOr<SymbolDigest>>> digests;
  ExecutableId named;  // code without a file
  int sent = 0;
  std::shared_ptr<SymbolMaker> maker = std::make_shared<SymbolMaker>(
      [] { return testing::Fork([](int socket) { return RunSymbolMaker(socket); }); }, metrics);
  SymbolServer server{{.proc_root = proc.proc()}, {files, maker, executor}, clock, metrics, Callbacks()};
};

TEST_F(SymbolServerTest, TheKernelsNamesAreOffsetsFromItsText) {
  auto table = Ask(BuildId("kernel"));
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->id(), BuildId("kernel"));
  ASSERT_TRUE(table->Find(0x100).has_value());
  EXPECT_EQ(table->Find(0x100)->name, "work");
}

TEST_F(SymbolServerTest, AModulesNamesAreOffsetsFromItsBase) {
  auto table = Ask(BuildId("mod"));
  ASSERT_NE(table, nullptr);
  ASSERT_TRUE(table->Find(0x10).has_value());
  EXPECT_EQ(table->Find(0x10)->name, "mod_work");
}

TEST_F(SymbolServerTest, CodeWithoutAFileHasOneName) {
  named = BuildId("generated");
  auto table = Ask(named);
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->id(), named);
  EXPECT_EQ(table->Find(0)->name, "bpf_prog_1_x");
  EXPECT_EQ(table->Find(100'000)->name, "bpf_prog_1_x");
  EXPECT_FALSE(maker->running());
}

TEST_F(SymbolServerTest, ReadsAFilesNamesThroughItsMapping) {
  const ExecutableId id = MapSelf();
  auto table = Ask(id);
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->id(), id);
  EXPECT_EQ(table->source(), SymbolSource::kSymtab);
  EXPECT_GT(table->function_count(), 100u);
}

TEST_F(SymbolServerTest, ReadsDebugInformationOnRequest) {
  SymbolServer wants({.proc_root = proc.proc(), .debug_information = true}, {files, maker, executor}, clock, metrics,
                     Callbacks());
  wants.SetKernel(Kernel());
  const ExecutableId id = MapSelf();
  auto table = Ask(id, wants);
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->source(), SymbolSource::kDwarf);
  clock.Advance(kNsPerSecond);
  EXPECT_NE(Ask(BuildId("kernel"), wants), nullptr) << "which has none";
}

TEST_F(SymbolServerTest, FallsBackToSymbolsIfDebugInformationIsUnreadable) {
  int spawned = 0;
  auto dies_once = std::make_shared<SymbolMaker>(
      [&] {
        return testing::Fork([first = spawned++ == 0](int socket) {
          SymbolMakerRequest request;
          Fd file;
          if (!first) return RunSymbolMaker(socket);
          return ReceiveWithFile(socket, &request, sizeof(request), &file, -1) ? 1 : 2;
        });
      },
      metrics);
  SymbolServer wants({.proc_root = proc.proc(), .debug_information = true}, {files, dies_once, executor}, clock,
                     metrics, Callbacks());
  auto table = Ask(MapSelf(), wants);
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->source(), SymbolSource::kSymtab);
  EXPECT_EQ(spawned, 2);
}

// Two nodes with the same file send the same digest, whether they have sent the table or not.
TEST_F(SymbolServerTest, SendsTheDigestOfATable) {
  const ExecutableId id = MapSelf();
  server.RequestDigest(id);
  executor.RunAll();
  ASSERT_EQ(digests.size(), 1u);
  EXPECT_EQ(digests[0].first, id);
  EXPECT_EQ(sent, 0) << "no table is sent";
  ASSERT_TRUE(digests[0].second.ok());
  EXPECT_EQ(digests[0].second->source, SymbolSource::kSymtab);
  server.RequestDigest(id);
  ASSERT_EQ(digests.size(), 2u) << "known: no table is made";
  EXPECT_EQ(*digests[1].second, *digests[0].second);

  SymbolServer other({.proc_root = proc.proc()}, {files, maker, executor}, clock, metrics, Callbacks());
  clock.Advance(60 * kNsPerSecond);
  ASSERT_NE(Ask(id, other), nullptr);
  EXPECT_EQ(DigestOf(tables[id]), *digests[0].second);
  other.RequestDigest(id);
  ASSERT_EQ(digests.size(), 3u);
  EXPECT_EQ(*digests[2].second, *digests[0].second);
}

TEST_F(SymbolServerTest, SendsTheReasonInsteadOfADigest) {
  server.RequestDigest(BuildId("unknown"));
  executor.RunAll();
  ASSERT_EQ(digests.size(), 1u);
  EXPECT_FALSE(digests[0].second.ok());
  EXPECT_TRUE(reasons.empty());
  // Code of one name has a digest, too.
  named = BuildId("generated");
  server.RequestDigest(named);
  executor.RunAll();
  ASSERT_EQ(digests.size(), 2u);
  EXPECT_EQ(digests[1].second->source, SymbolSource::kKallsyms);
}

TEST_F(SymbolServerTest, AnswersALimitedNumberOfRequestsForDigests) {
  const ExecutableId id = MapSelf();
  for (uint32_t i = 0; i < 2 * SymbolServer::kAnswersMax; ++i) {
    server.RequestDigest(id);
    executor.RunAll();
    clock.Advance(60 * kNsPerSecond);
  }
  EXPECT_EQ(digests.size(), SymbolServer::kAnswersMax);
}

TEST_F(SymbolServerTest, TheVdsoIsReadFromMemory) {
  auto vdso = ReadOwnVdso();
  ASSERT_TRUE(vdso.ok()) << vdso.status();
  server.SetVdso(vdso->id, vdso->bytes);
  auto table = Ask(vdso->id);
  ASSERT_NE(table, nullptr);
  EXPECT_GT(table->function_count(), 0u);
}

TEST_F(SymbolServerTest, ReportsWhyThereIsNoTable) {
  EXPECT_EQ(Ask(BuildId("never seen")), nullptr);
  EXPECT_NE(reasons[BuildId("never seen")], "");
  // A file with that name but another identity is not sent.
  proc.AddFile("/bin/other", TinyElf("other"));
  files.Intern(FileKey{.build_id = BuildId("wanted")}, {Pid{42}, 0x1000, 0x2000, "/bin/other"});
  EXPECT_EQ(Ask(BuildId("wanted")), nullptr);
  EXPECT_NE(reasons[BuildId("wanted")], "");
  // The right file, but without symbols.
  files.Intern(FileKey{.build_id = BuildId("other")}, {Pid{42}, 0x1000, 0x2000, "/bin/other"});
  EXPECT_EQ(Ask(BuildId("other")), nullptr);
  EXPECT_NE(reasons[BuildId("other")], "");
}

TEST_F(SymbolServerTest, LimitsAnswersForTheSameId) {
  Ask(BuildId("kernel"));
  for (uint32_t i = 0; i < 2 * SymbolServer::kAnswersMax; ++i) {
    clock.Advance(SymbolServer::kAgainNs);
    Ask(BuildId("kernel"));
  }
  EXPECT_EQ(sent, static_cast<int>(SymbolServer::kAnswersMax));
}

// The reducer requests an interrupted upload again as soon as the node is back.
TEST_F(SymbolServerTest, AnswersTheSameIdAgainAfterAPause) {
  Ask(BuildId("kernel"));
  Ask(BuildId("kernel"));
  EXPECT_EQ(sent, 1) << "too soon";
  clock.Advance(kNsPerSecond);
  Ask(BuildId("mod"));
  EXPECT_EQ(sent, 2) << "what waits holds up nobody else";
  clock.Advance(SymbolServer::kAgainNs - kNsPerSecond - 1);
  server.Tick();
  executor.RunAll();  // the maker is idle and is stopped
  EXPECT_EQ(sent, 2);
  clock.Advance(1);
  server.Tick();
  executor.RunAll();
  EXPECT_EQ(sent, 3);
}

TEST_F(SymbolServerTest, ReadsOneAtATimeAndNoFasterThanTheUplink) {
  server.Request(BuildId("kernel"));
  server.Request(BuildId("mod"));
  server.Request(BuildId("mod"));  // already waiting
  EXPECT_EQ(executor.waiting(), 1u);
  executor.RunAll();
  EXPECT_EQ(sent, 1);
  server.Tick();
  EXPECT_EQ(executor.waiting(), 0u);
  clock.Advance(kNsPerMs);
  server.Tick();
  EXPECT_EQ(executor.waiting(), 1u);
  executor.RunAll();
  EXPECT_EQ(sent, 2);
}

TEST_F(SymbolServerTest, RequestsAreCapped) {
  executor.capacity = 0;
  for (size_t i = 0; i < SymbolServer::kPendingMax + 10; ++i) server.Request(BuildId("id " + std::to_string(i)));
  executor.capacity = 1;
  size_t answered = 0;
  for (size_t i = 0; i < SymbolServer::kPendingMax + 10; ++i) {
    clock.Advance(kNsPerSecond);
    server.Tick();
    answered += executor.RunAll();
  }
  EXPECT_EQ(answered, SymbolServer::kPendingMax);
  EXPECT_EQ(reasons.size(), SymbolServer::kPendingMax);
  server.Request(ExecutableId());  // "unknown" has no table
  EXPECT_EQ(executor.waiting(), 0u);
}

TEST_F(SymbolServerTest, AReducerGetsALimitedNumberOfTables) {
  SymbolServer limited({.proc_root = proc.proc(), .answered_max = 2}, {files, maker, executor}, clock, metrics,
                       Callbacks());
  for (int i = 0; i < 4; ++i) {
    clock.Advance(kNsPerSecond);
    Ask(BuildId("id " + std::to_string(i)), limited);
  }
  EXPECT_EQ(reasons.size(), 2u);
  EXPECT_EQ(metrics.AddCounter("tributary_collector_symbol_requests_refused_total", "").value(), 2u);
}

TEST_F(SymbolServerTest, ForThisNodeTheOldestAnswersAreForgotten) {
  SymbolServer local({.proc_root = proc.proc(), .for_this_node = true, .answers_max = 1, .answered_max = 2},
                     {files, maker, executor}, clock, metrics, Callbacks());
  local.SetKernel(Kernel());
  for (int i = 0; i < 5; ++i) {
    clock.Advance(kNsPerSecond);
    Ask(BuildId("id " + std::to_string(i)), local);
  }
  EXPECT_EQ(reasons.size(), 5u);
  clock.Advance(kNsPerSecond);
  EXPECT_NE(Ask(BuildId("kernel"), local), nullptr);
  EXPECT_TRUE(tables[BuildId("kernel")].starts_with("TSYMFLAT"));
  Ask(BuildId("kernel"), local);  // known: it must wait
  EXPECT_EQ(sent, 1);
  clock.Advance(SymbolServer::kAgainNs);
  local.Tick();
  executor.RunAll();
  EXPECT_EQ(sent, 2) << "an id has no limit of answers";
  EXPECT_EQ(metrics.AddCounter("tributary_collector_symbol_requests_refused_total", "").value(), 0u);
}

// Samples must not wait for a table that nobody makes.
TEST_F(SymbolServerTest, ForThisNodeARefusalIsAnswered) {
  SymbolServer local({.proc_root = proc.proc(), .for_this_node = true}, {files, maker, executor}, clock, metrics,
                     Callbacks());
  executor.capacity = 0;
  for (size_t i = 0; i <= SymbolServer::kPendingMax; ++i) {
    EXPECT_TRUE(reasons.empty());
    local.Request(BuildId("id " + std::to_string(i)));
  }
  EXPECT_EQ(reasons.size(), 1u);
  EXPECT_TRUE(reasons.contains(BuildId("id " + std::to_string(SymbolServer::kPendingMax))));
}

TEST_F(SymbolServerTest, StopsAnIdleMaker) {
  ASSERT_NE(Ask(BuildId("kernel")), nullptr);
  EXPECT_TRUE(maker->running());
  clock.Advance(SymbolServer::kMakerIdleNs - kNsPerMs);
  server.Tick();
  EXPECT_EQ(executor.RunAll(), 0u);
  clock.Advance(kNsPerMs);
  server.Tick();
  EXPECT_EQ(executor.RunAll(), 1u);
  EXPECT_FALSE(maker->running());
  server.Tick();
  EXPECT_EQ(executor.RunAll(), 0u);
  EXPECT_NE(Ask(BuildId("mod")), nullptr) << "and comes back";
  EXPECT_EQ(metrics.AddCounter("tributary_collector_symbol_maker_deaths_total", "").value(), 0u);
}

}  // namespace
}  // namespace tributary
