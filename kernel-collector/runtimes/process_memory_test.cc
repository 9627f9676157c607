#include "kernel-collector/runtimes/process_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"

namespace tributary {
namespace {

// A clock that a test moves while another thread reads it.
class SharedClock : public Clock {
 public:
  MonotonicNs Monotonic() const override { return MonotonicNs(now_.load()); }
  UnixNs Unix() const override { return UnixNs(now_.load()); }
  void Advance(int64_t ns) { now_ += ns; }

 private:
  std::atomic<int64_t> now_{kNsPerSecond};
};

class ProcessMemoryTest : public testing::Test {
 protected:
  absl::Status Read(ProcessMemory& memory, const void* from, std::string* to) {
    const ProcessMemory::Part part{reinterpret_cast<uint64_t>(from), *to};
    return memory.Read({&part, 1});
  }
  uint64_t Count(std::string_view name) { return metrics_.AddCounter(name, "").value(); }

  SharedClock clock_;
  Metrics metrics_{clock_};
  ProcessMemoryReader reader_{clock_, metrics_};
  const Pid self_{getpid()};
};

TEST_F(ProcessMemoryTest, ReadsAllPartsInOrder) {
  const std::string first = "first", second = "second";
  std::string a(5, ' '), b(6, ' ');
  const ProcessMemory::Part parts[] = {{reinterpret_cast<uint64_t>(first.data()), a},
                                       {reinterpret_cast<uint64_t>(second.data()), b}};
  ASSERT_TRUE(reader_.Open(self_)->Read(parts).ok());
  EXPECT_EQ(a, "first");
  EXPECT_EQ(b, "second");
  EXPECT_EQ(Count("tributary_collector_runtime_memory_read_bytes_total"), 11u);
}

TEST_F(ProcessMemoryTest, RefusesPartialReads) {
  const size_t page = 4096;
  char* pages = static_cast<char*>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(munmap(pages + page, page), 0);
  std::string bytes(16, ' ');
  auto memory = reader_.Open(self_);
  EXPECT_TRUE(Read(*memory, pages + page - 16, &bytes).ok());
  EXPECT_EQ(Read(*memory, pages + page - 8, &bytes).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Read(*memory, pages + page, &bytes).code(), absl::StatusCode::kDataLoss);
  munmap(pages, page);
}

TEST_F(ProcessMemoryTest, RefusesAddressesOfTheKernel) {
  std::string bytes(16, ' ');
  EXPECT_EQ(Read(*reader_.Open(self_), reinterpret_cast<void*>(0xffffffff80000000), &bytes).code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(Read(*reader_.Open(self_), reinterpret_cast<void*>(UINT64_MAX - 7), &bytes).code(),
            absl::StatusCode::kDataLoss);
}

TEST_F(ProcessMemoryTest, RefusesTooManyPartsAndBytes) {
  auto memory = reader_.Open(self_);
  std::vector<ProcessMemory::Part> parts(ProcessMemory::kPartsMax + 1);
  EXPECT_EQ(memory->Read(parts).code(), absl::StatusCode::kInvalidArgument);
  std::string large(ProcessMemoryReader::kReadBytesMax + 1, ' ');
  EXPECT_EQ(Read(*memory, large.data(), &large).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Count("tributary_collector_runtime_memory_failed_reads_total"), 2u);
}

TEST_F(ProcessMemoryTest, ReportsAnEndedProcess) {
  pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  std::string bytes(8, ' ');
  EXPECT_EQ(Read(*reader_.Open(Pid{child}), bytes.data(), &bytes).code(), absl::StatusCode::kNotFound);
}

// Memory that this process fills itself: a read of it waits until Release().
class BlockingPage {
 public:
  static constexpr size_t kBytes = 4096;
  BlockingPage() {
    fault_ = Fd(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK)));
    uffdio_api api{.api = UFFD_API};
    page_ = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uffdio_register area{.range = {reinterpret_cast<uint64_t>(page_), kBytes}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    ready_ = ioctl(fault_.get(), UFFDIO_API, &api) == 0 && ioctl(fault_.get(), UFFDIO_REGISTER, &area) == 0;
  }
  ~BlockingPage() { munmap(page_, kBytes); }
  bool ready() const { return ready_; }
  const void* page() const { return page_; }
  // Waits until a thread has touched the page.
  void WaitForReader() {
    uffd_msg message{};
    while (read(fault_.get(), &message, sizeof(message)) != sizeof(message)) std::this_thread::yield();
  }
  void Release() {
    uffdio_zeropage fill{.range = {reinterpret_cast<uint64_t>(page_), kBytes}};
    ioctl(fault_.get(), UFFDIO_ZEROPAGE, &fill);
  }

 private:
  Fd fault_;
  void* page_ = nullptr;
  bool ready_ = false;
};

TEST_F(ProcessMemoryTest, DoesNotReadASlowProcessAgain) {
  BlockingPage blocking;
  ASSERT_TRUE(blocking.ready()) << "userfaultfd needs root, or vm.unprivileged_userfaultfd";
  absl::Status stuck;
  std::thread reading([&] {
    std::string bytes(8, ' ');
    stuck = Read(*reader_.Open(self_), blocking.page(), &bytes);
  });
  blocking.WaitForReader();
  std::string bytes(8, ' ');
  const std::string source = "eight by";
  EXPECT_FALSE(reader_.IsSlow(self_));
  EXPECT_TRUE(Read(*reader_.Open(self_), source.data(), &bytes).ok());
  clock_.Advance(ProcessMemoryReader::kDeadlineNs + 1);
  EXPECT_TRUE(reader_.IsSlow(self_));
  EXPECT_EQ(Read(*reader_.Open(self_), source.data(), &bytes).code(), absl::StatusCode::kPermissionDenied);
  blocking.Release();
  reading.join();
  EXPECT_EQ(stuck.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(reader_.IsSlow(self_));
  EXPECT_EQ(Count("tributary_collector_runtime_memory_slow_processes_total"), 1u);
  reader_.Forget(self_);
  EXPECT_TRUE(Read(*reader_.Open(self_), source.data(), &bytes).ok());
}

TEST_F(ProcessMemoryTest, AGroupOccupiesOneThread) {
  BlockingPage blocking;
  ASSERT_TRUE(blocking.ready()) << "userfaultfd needs root, or vm.unprivileged_userfaultfd";
  std::thread reading([&] {
    std::string bytes(8, ' ');
    EXPECT_TRUE(Read(*reader_.Open(self_, "c"), blocking.page(), &bytes).ok());
  });
  blocking.WaitForReader();
  std::string bytes(8, ' ');
  const std::string source = "eight by";
  EXPECT_EQ(Read(*reader_.Open(self_, "c"), source.data(), &bytes).code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Read(*reader_.Open(self_, "d"), source.data(), &bytes).ok());
  EXPECT_TRUE(Read(*reader_.Open(self_), source.data(), &bytes).ok());
  EXPECT_EQ(Count("tributary_collector_runtime_memory_failed_reads_total"), 1u);
  blocking.Release();
  reading.join();
  EXPECT_TRUE(Read(*reader_.Open(self_, "c"), source.data(), &bytes).ok());
}

}  // namespace
}  // namespace tributary
