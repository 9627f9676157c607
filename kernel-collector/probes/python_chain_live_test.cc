// Chains of CPython's frames on the running kernel, as root, with the system's Python 3.11.

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "base/fd.h"
#include "kernel-collector/probes/chain_live_testing.h"

namespace tributary {
namespace {

constexpr char kPython[] = "/usr/bin/python3.11";

// The frames of report's caller and of its callers, one a line: address of the code object, position, name. For callers
// that do not run, f_lasti is the position.
constexpr char kPrelude[] = R"(
import hashlib, os, sys, threading
def report():
    frame = sys._getframe(1)
    while frame:
        print(id(frame.f_code), frame.f_lasti, frame.f_code.co_name, frame.f_code.co_firstlineno)
        frame = frame.f_back
    print("end", threading.get_native_id(), flush=True)
def spin():
    report()
    while True:
        pass
)";

struct PythonFrame {
  uint64_t code;
  int32_t position;
  std::string name;
};

// A running Python program, which has reported the frames of the thread that spins.
class Script {
 public:
  explicit Script(const std::string& text) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const Fd read_end(ends[0]), write_end(ends[1]);
    child_.emplace([&] {
      dup2(write_end.get(), STDOUT_FILENO);
      execl(kPython, kPython, "-I", "-S", "-c", (kPrelude + text).c_str(), nullptr);
    });
    std::string lines;
    char buffer[4096];
    while (lines.find("end ") == std::string::npos || lines.back() != '\n') {
      const ssize_t bytes = read(read_end.get(), buffer, sizeof(buffer));
      if (bytes <= 0) break;
      lines.append(buffer, static_cast<size_t>(bytes));
    }
    std::istringstream stream(lines);
    std::string line;
    while (std::getline(stream, line) && !line.starts_with("end ")) {
      PythonFrame frame;
      std::istringstream(line) >> frame.code >> frame.position >> frame.name;
      frames_.push_back(frame);
    }
    EXPECT_TRUE(line.starts_with("end ")) << lines;
    if (line.starts_with("end ")) tid_ = static_cast<uint32_t>(std::stoul(line.substr(4)));
  }

  Pid pid() const { return child_->pid(); }
  uint32_t tid() const { return tid_; }
  const std::vector<PythonFrame>& frames() const { return frames_; }

 private:
  std::optional<Child> child_;
  uint32_t tid_ = 0;
  std::vector<PythonFrame> frames_;
};

class PythonChainLive : public ChainLiveTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(access(kPython, X_OK), 0) << kPython << " is missing: run dev/deps";
    ChainLiveTest::SetUp();
    SetRuntime(kRuntime, Python311());
    const Script script("spin()");
    executable_ = ExecutableOf(script.pid());
    ASSERT_NE(executable_.inode, 0u);
    ASSERT_TRUE(probes->unwind_maps().SetInterpreter(executable_, TRIB_PROCESS_RUNTIMES(kRuntime, 0)).ok());
  }
  void TearDown() override {
    if (probes != nullptr) ChainLiveTest::TearDown();
  }

  // Returns true for a sample of the function that reported. Its first samples may be of the functions that it called.
  static bool Spins(const Script& script, const SeenChains& seen) {
    return !seen.chains.empty() && !seen.chains[0].frames.empty() &&
           seen.chains[0].frames[0].code == script.frames()[0].code;
  }
  // Checks that the thread's chains have the frames that the program has reported. `entries` are the indexes of the
  // frames in which the interpreter's loop was entered.
  void ExpectChains(const Script& script, const std::vector<std::string>& names, const std::vector<size_t>& entries) {
    const auto spins = [&](const SeenChains& seen) { return seen.sample.tid == script.tid() && Spins(script, seen); };
    for (const SeenChains& seen : Samples(script.pid(), 10, spins)) {
      ASSERT_EQ(seen.chains.size(), 1u);
      EXPECT_EQ(seen.chains[0].runtime, kRuntime);
      EXPECT_EQ(seen.chains[0].end, TRIB_CHAIN_COMPLETE);
      ExpectFrames(script, seen.chains[0].frames, names, entries);
    }
  }
  void ExpectFrames(const Script& script, const std::vector<RuntimeFrame>& frames,
                    const std::vector<std::string>& names, const std::vector<size_t>& entries) {
    ASSERT_EQ(frames.size(), names.size());
    for (size_t i = 0; i < frames.size(); ++i) {
      const PythonFrame& expected = script.frames()[i];
      EXPECT_EQ(expected.name, names[i]);
      EXPECT_EQ(frames[i].code, expected.code) << names[i];
      EXPECT_EQ(frames[i].is_entry, std::ranges::find(entries, i) != entries.end()) << names[i];
      EXPECT_EQ(frames[i].check, CheckOf(script.pid(), Python311().python, expected.code)) << names[i];
      // The innermost function has continued since its report.
      if (i > 0) {
        EXPECT_EQ(frames[i].position, expected.position) << names[i];
      }
      EXPECT_GE(frames[i].position, -2) << names[i];
      EXPECT_LT(frames[i].position, 1000) << names[i];
      EXPECT_EQ(frames[i].position % 2, 0) << names[i];
    }
  }

  trib_executable_key executable_ = {};
};

TEST_F(PythonChainLive, HasTheFramesOfAProcessWithAKnownExecutable) {
  struct stat status = {};
  ASSERT_EQ(stat(kPython, &status), 0);
  EXPECT_EQ(executable_.inode, status.st_ino);
  const Script script(R"(
def inner():
    spin()
class Key:
    def compare(self, item):
        inner()
def outer():
    sorted([1, 2], key=Key().compare)
outer()
)");
  ExpectChains(script, {"spin", "inner", "compare", "outer", "<module>"}, {2, 4});
  const SeenChains seen = One(script.pid(), [](const SeenChains& s) { return !s.chains.empty(); });
  EXPECT_EQ(seen.sample.stop, TRIB_STOP_NO_PROCESS);
  EXPECT_EQ(seen.sample.table, 0u);
}

TEST_F(PythonChainLive, HasTheFramesOfAPublishedProcess) {
  probes->unwind_maps().DropInterpreter(executable_);
  const Script script("spin()");
  DropSamples();
  const SeenChains first = One(script.pid(), [](const SeenChains&) { return true; });
  EXPECT_TRUE(first.chains.empty());
  const trib_process process = {.start_time_ns = first.sample.start_time_ns,
                                .exec_id = first.sample.exec_id,
                                .table = 5,
                                .runtimes = TRIB_PROCESS_RUNTIMES(0, kRuntime)};
  ASSERT_TRUE(probes->unwind_maps().SetProcess(script.pid(), process).ok());
  ExpectChains(script, {"spin", "<module>"}, {1});
}

TEST_F(PythonChainLive, HasFramesWhileAnExtensionRunsWithoutTheLock) {
  const Script script(R"(
def derive():
    report()
    hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 1 << 30)
derive()
)");
  ExpectChains(script, {"derive", "<module>"}, {1});
}

TEST_F(PythonChainLive, HasTheFramesOfGeneratorsAndCoroutines) {
  const Script script(R"(
def numbers():
    yield 1
    spin()
async def work():
    for number in numbers():
        pass
work().send(None)
)");
  ExpectChains(script, {"spin", "numbers", "work", "<module>"}, {1, 2, 3});
}

TEST_F(PythonChainLive, HasTheFramesOfAThread) {
  const Script script(R"(
threading.Thread(target=spin, daemon=True).start()
while True:
    pass
)");
  ASSERT_NE(script.tid(), static_cast<uint32_t>(script.pid().value));
  ExpectChains(script, {"spin", "run", "_bootstrap_inner", "_bootstrap"}, {0, 3});
}

TEST_F(PythonChainLive, EndsADeepChainWhereTheRecordIsFull) {
  const Script script(R"(
def recurse(depth):
    if depth:
        return recurse(depth - 1)
    spin()
recurse(900)
)");
  for (const SeenChains& seen : Samples(script.pid(), 5, [&](const SeenChains& s) { return Spins(script, s); })) {
    const SeenChains::Chain& chain = seen.chains[0];
    EXPECT_EQ(chain.end, TRIB_CHAIN_DEPTH);
    // The process is not published, so each sample has a copy of the stack, and less room.
    ASSERT_TRUE(seen.executable);
    EXPECT_GT(chain.frames.size(), 300u);
    for (size_t i = 0; i < chain.frames.size(); ++i) EXPECT_EQ(chain.frames[i].code, script.frames()[i].code) << i;
  }
  EXPECT_NE(Metric("chains_total{runtime=\"python\",end=\"depth\"}"), "0");
}

TEST_F(PythonChainLive, WakesTheReaderForAYoungProcessOnly) {
  pollfd wakeup = {.fd = probes->wakeup_fd(), .events = POLLIN};
  {
    const Script script("spin()");
    EXPECT_EQ(poll(&wakeup, 1, static_cast<int>(kPatienceNs / kNsPerMs)), 1);
  }
  probes->unwind_maps().DropInterpreter(executable_);
  const Child native([] {
    while (true) {
    }
  });
  Samples(native.pid(), 5, [](const SeenChains&) { return true; });
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(Samples(native.pid(), 1, [](const SeenChains&) { return true; }).size(), 1u);
    EXPECT_EQ(poll(&wakeup, 1, 0), 0) << i;
  }
}

}  // namespace
}  // namespace tributary
