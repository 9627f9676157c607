#include "reducer/symbolizer/source_fetcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>
#include <vector>

#include "base/status.h"

namespace tributary {
namespace {

using State = SourceFetcher::State;

class SourceFetcherTest : public ::testing::Test {
 protected:
  SourceFetcher& Open(SourceFetcher::Options options = {}) {
    options.in_background = false;
    fetcher_ = std::make_unique<SourceFetcher>(
        options,
        [this](const ExecutableId&, const std::string& path) -> absl::StatusOr<std::string> {
          asked_.push_back(path);
          if (!failure_.ok()) return failure_;
          const auto file = files_.find(path);
          if (file == files_.end()) return Error(absl::StatusCode::kNotFound, "no server has it");
          return file->second;
        },
        notices_, clock_, metrics_);
    return *fetcher_;
  }
  // Returns the result of Find after all waiting files were fetched.
  SourceFetcher::Source Fetched(std::string_view path) {
    EXPECT_EQ(fetcher_->Find(id_, path).state, State::kComing);
    fetcher_->FetchWaiting();
    return fetcher_->Find(id_, path);
  }

  FakeClock clock_;
  Metrics metrics_;
  SymbolNotices notices_{clock_};
  const ExecutableId id_ = *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::string_view("0123456789"));
  std::map<std::string, std::string> files_ = {{"/src/a.c", "one\ntwo\n"}};
  absl::Status failure_;
  std::vector<std::string> asked_;
  std::unique_ptr<SourceFetcher> fetcher_;
};

TEST_F(SourceFetcherTest, FindsAFetchedFileTheNextTime) {
  Open();
  EXPECT_EQ(fetcher_->Find(id_, "/src/a.c").state, State::kComing);
  EXPECT_EQ(fetcher_->Find(id_, "/src/./x/../a.c").state, State::kComing);  // the same file
  fetcher_->FetchWaiting();
  const auto found = fetcher_->Find(id_, "/src/a.c");
  ASSERT_EQ(found.state, State::kHere);
  EXPECT_EQ(*found.text, "one\ntwo\n");
  EXPECT_EQ(asked_, std::vector<std::string>{"/src/a.c"});
}

TEST_F(SourceFetcherTest, AsksAgainForAMissingFileAfterAWhile) {
  Open();
  EXPECT_EQ(Fetched("/src/b.c").state, State::kNone);
  clock_.Advance(3'599 * kNsPerSecond);
  EXPECT_EQ(fetcher_->Find(id_, "/src/b.c").state, State::kNone);
  clock_.Advance(kNsPerSecond);
  files_["/src/b.c"] = "text";
  EXPECT_EQ(Fetched("/src/b.c").state, State::kHere);
  EXPECT_TRUE(notices_.List().empty());
}

TEST_F(SourceFetcherTest, ReportsAFailingServerAndAsksItAgainSooner) {
  Open();
  failure_ = Error(absl::StatusCode::kUnavailable, "it hangs");
  EXPECT_EQ(Fetched("/src/a.c").state, State::kNone);
  ASSERT_EQ(notices_.List().size(), 1u);
  EXPECT_EQ(notices_.List()[0].text, "source text: it hangs");
  failure_ = absl::OkStatus();
  clock_.Advance(60 * kNsPerSecond);
  EXPECT_EQ(Fetched("/src/a.c").state, State::kHere);
}

TEST_F(SourceFetcherTest, DoesNotAskForInvalidPaths) {
  Open();
  const std::string long_path = "/" + std::string(SourceFetcher::kPathBytesMax, 'a');
  for (const std::string& path : {std::string(), std::string("src/a.c"), std::string("/"), std::string("/src/"),
                                  std::string("/src/a\nb.c"), std::string("/a\0b", 4), long_path}) {
    EXPECT_EQ(fetcher_->Find(id_, path).state, State::kNone) << path;
  }
  const auto hash = ExecutableId::Make(ExecutableIdKind::kContentHash, std::string_view("0123456789abcdef"));
  EXPECT_EQ(fetcher_->Find(*hash, "/src/a.c").state, State::kNone);
  fetcher_->FetchWaiting();
  EXPECT_TRUE(asked_.empty());
  Fetched("//../../etc/passwd");
  EXPECT_EQ(asked_, std::vector<std::string>{"/etc/passwd"});
}

TEST_F(SourceFetcherTest, EvictsTheOldestTextsOverTheCap) {
  files_["/src/b.c"] = std::string(6, 'b');
  files_["/src/c.c"] = std::string(20, 'c');
  Open({.text_bytes_max = 10});
  EXPECT_EQ(Fetched("/src/a.c").state, State::kHere);
  EXPECT_EQ(Fetched("/src/b.c").state, State::kHere);
  EXPECT_EQ(Fetched("/src/c.c").state, State::kNone);  // more than the limit of all files
  EXPECT_EQ(fetcher_->Find(id_, "/src/b.c").state, State::kHere);
  EXPECT_EQ(fetcher_->Find(id_, "/src/a.c").state, State::kComing);
}

TEST_F(SourceFetcherTest, DropsAndCountsFilesOverTheWaitingLimit) {
  Open();
  for (size_t i = 0; i < SourceFetcher::kWaitingMax + 5; ++i) {
    EXPECT_EQ(fetcher_->Find(id_, "/src/" + std::to_string(i)).state, State::kComing);
  }
  EXPECT_EQ(metrics_.AddCounter("tributary_symbolizer_sources_dropped_total", "").value(), 5u);
  fetcher_->FetchWaiting();
  EXPECT_EQ(asked_.size(), SourceFetcher::kWaitingMax);
}

TEST_F(SourceFetcherTest, ManyFilesEvictTheOldest) {
  Open();
  for (size_t i = 0; i < SourceFetcher::kFilesMax + 10; ++i) {
    fetcher_->Find(id_, "/src/" + std::to_string(i));
    fetcher_->FetchWaiting();
  }
  EXPECT_EQ(metrics_.AddCounter("tributary_symbolizer_sources_evicted_total", "").value(), 10u);
  EXPECT_EQ(fetcher_->Find(id_, "/src/100").state, State::kNone);
  EXPECT_EQ(fetcher_->Find(id_, "/src/0").state, State::kComing);
}

TEST_F(SourceFetcherTest, AskingNeverWaitsForAServer) {
  std::promise<void> asked, answer;
  const std::shared_future<void> answered = answer.get_future();
  std::atomic<int> calls = 0;
  {
    SourceFetcher fetcher(
        {},
        [&](const ExecutableId&, const std::string&) -> absl::StatusOr<std::string> {
          if (calls++ == 0) asked.set_value();
          answered.wait();
          return "text";
        },
        notices_, clock_, metrics_);
    EXPECT_EQ(fetcher.Find(id_, "/src/a.c").state, State::kComing);
    asked.get_future().wait();
    EXPECT_EQ(fetcher.Find(id_, "/src/a.c").state, State::kComing);
    EXPECT_EQ(fetcher.Find(id_, "/src/b.c").state, State::kComing);
    answer.set_value();
  }
}

}  // namespace
}  // namespace tributary
