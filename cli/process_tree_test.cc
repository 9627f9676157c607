#include "cli/process_tree.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace tributary::cli {
namespace {

TEST(ProcessTree, FindsAllBelowARootEvenInALoop) {
  Parents parents = {{2, 1}, {3, 2}, {4, 3}, {5, 1}, {6, 7}, {7, 6}};
  EXPECT_EQ(Descendants(2, parents), (std::set<int64_t>{2, 3, 4}));
  EXPECT_EQ(Descendants(6, parents), (std::set<int64_t>{6, 7}));
  EXPECT_EQ(Descendants(99, parents), (std::set<int64_t>{99}));
}

TEST(ProcessTree, ReadsLivingChildrenOfEveryThread) {
  char path[] = "/tmp/tributary_proc_XXXXXX";
  std::string root = mkdtemp(path);
  auto write = [&](const std::string& task, const std::string& children) {
    std::filesystem::create_directories(root + task);
    std::ofstream(root + task + "/children") << children;
  };
  write("/10/task/10", "11 12 ");
  write("/10/task/99", "13 ");
  write("/12/task/12", "14 10 ");  // a pid that appears again
  Parents parents;
  AddLivingChildren(root, 10, parents);
  EXPECT_EQ(parents, (Parents{{10, 12}, {11, 10}, {12, 10}, {13, 10}, {14, 12}}));
  std::filesystem::remove_all(root);
}

TEST(ProcessTree, SelectorsKeepTheLimit) {
  EXPECT_EQ(PidSelectors({1, 22, 333}), (std::vector<std::string>{"{process_pid=~\"1|22|333\"}"}));
  EXPECT_EQ(PidSelectors({1, 22, 333}, 4),
            (std::vector<std::string>{"{process_pid=~\"1|22\"}", "{process_pid=~\"333\"}"}));
  std::set<int64_t> many;
  for (int64_t pid = 4'000'000; pid < 4'001'000; ++pid) many.insert(pid);
  size_t selected = 0;
  for (const std::string& selector : PidSelectors(many)) {
    EXPECT_LE(selector.size(), 1024u);
    selected += static_cast<size_t>(std::count(selector.begin(), selector.end(), '|')) + 1;
  }
  EXPECT_EQ(selected, 1000u);
}

}  // namespace
}  // namespace tributary::cli
