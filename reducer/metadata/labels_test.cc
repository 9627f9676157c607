#include "reducer/metadata/labels.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

TEST(Labels, DottedAndNormalizedNamesAreTheSame) {
  EXPECT_EQ(FindLabel("process.executable.name"), Label::kProcessExecutableName);
  EXPECT_EQ(FindLabel("process_executable_name"), Label::kProcessExecutableName);
  EXPECT_EQ(FindLabel("process_executable.name"), Label::kProcessExecutableName);
  EXPECT_EQ(FindLabel("process"), std::nullopt);
  EXPECT_EQ(FindLabel(""), std::nullopt);
}

TEST(Labels, NamesOfKubernetesAreNormalizedToo) {
  EXPECT_EQ(NormalizeLabel("k8s.pod.label.app.kubernetes.io/my-name"), "k8s_pod_label_app_kubernetes_io_my_name");
  EXPECT_TRUE(IsNormalizedAs("a.b/c-d_e", "a_b_c_d_e"));
  EXPECT_FALSE(IsNormalizedAs("a.b", "a_b_c"));
  EXPECT_FALSE(IsNormalizedAs("a.b", "a.b"));
}

TEST(Labels, EveryNameIsFoundAgain) {
  for (int i = 0; i <= static_cast<int>(Label::kNodeId); ++i) {
    EXPECT_EQ(FindLabel(LabelName(static_cast<Label>(i))), static_cast<Label>(i));
  }
}

TEST(Labels, ValuesComeFromTheRows) {
  store::ProcessRow process;
  process.pid = Pid{42};
  process.node_id = "n1";
  process.host_name = "web";
  process.comm = "na\xffme";
  process.executable_path = "/usr/bin/truth";
  process.container_id = "abc";
  EXPECT_EQ(LabelValue(Label::kProcessPid, process), "42");
  EXPECT_EQ(LabelValue(Label::kProcessExecutableName, process), "truth");
  EXPECT_EQ(LabelValue(Label::kProcessExecutablePath, process), "/usr/bin/truth");
  EXPECT_EQ(LabelValue(Label::kProcessCommand, process), "na\xef\xbf\xbdme");
  EXPECT_EQ(LabelValue(Label::kContainerId, process), "abc");
  EXPECT_EQ(LabelValue(Label::kHostName, process), "web");
  EXPECT_EQ(LabelValue(Label::kHostId, process), "n1");
  EXPECT_EQ(LabelValue(Label::kNodeId, process), "n1");
  EXPECT_EQ(LabelValue(Label::kThreadId, process), "");
  EXPECT_EQ(LabelValue(Label::kProcessPid, store::ProcessRow{}), "");

  store::ThreadRow thread;
  thread.tid = Tid{7};
  thread.name = "worker";
  EXPECT_EQ(LabelValue(Label::kThreadId, thread), "7");
  EXPECT_EQ(LabelValue(Label::kThreadName, thread), "worker");
  EXPECT_EQ(LabelValue(Label::kNodeId, thread), "");
}

}  // namespace
}  // namespace tributary
