#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "reducer/profile_metrics/profile_metrics_loop_testing.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

TEST_F(ProfileMetricsLoopTest, FindsTheInnermostFrame) {
  Begin({"name=cpu_total,by=language,function,library"});
  const store::ProcessNo process = AddProcess("a");
  AddSamples(process, 50, leaf_);
  AddSamples(process, 100, kernel_);
  AddSamples(process, 150, store::NodeNo{0});
  const store::NodeNo unnamed =
      AddNode(0, store::NodeNo{0}, {.kind = FrameKind::kNative, .executable = executable_, .address = 0x9999});
  AddSamples(process, 200, unnamed);
  loop_->RunOnce();
  EXPECT_THAT(Text(), HasSubstr("cpu_total{language=\"native\",function=\"work()\",library=\"libwork.so.1\"} 1\n"));
  EXPECT_THAT(Text(), HasSubstr("cpu_total{language=\"kernel\",function=\"[unknown]\",library=\"[kernel]\"} 2\n"));
  EXPECT_THAT(Text(), HasSubstr("cpu_total{language=\"unknown\",function=\"[unknown]\",library=\"[unknown]\"} 3\n"));
  EXPECT_THAT(Text(), HasSubstr("cpu_total{language=\"native\",function=\"[unknown]\",library=\"libwork.so.1\"} 4\n"));
}

TEST_F(ProfileMetricsLoopTest, NamesLanguages) {
  Begin({"name=cpu_total,by=language,function,library"});
  store_.shards[0].texts = {"", "App.run"};
  const store::ProcessNo process = AddProcess("a");
  const store::ExecutableNo source = store_.shards[0].AddExecutable(ExecutableId(), "/srv/app.py");
  store::FrameRow frame{.kind = FrameKind::kPython, .executable = source, .position = 3, .name = store::StringId{1}};
  AddSamples(process, 50, AddNode(0, leaf_, frame));
  AddSamples(process, 100, AddNode(0, leaf_, {.kind = FrameKind::kJit}));
  AddSamples(process, 150, AddNode(0, leaf_, {.kind = FrameKind::kInterpreter, .executable = executable_}));
  loop_->RunOnce();
  EXPECT_THAT(Text(), HasSubstr("cpu_total{language=\"python\",function=\"App.run\",library=\"app.py\"} 1\n"));
  EXPECT_THAT(Text(), HasSubstr("cpu_total{language=\"jit\",function=\"[jit]\",library=\"[unknown]\"} 2\n"));
  EXPECT_THAT(Text(), HasSubstr("cpu_total{language=\"native\",function=\"[unknown]\",library=\"libwork.so.1\"} 3\n"));
}

TEST_F(ProfileMetricsLoopTest, AnInlinedFunctionWithoutNameIsNotItsCaller) {
  SymbolTableBuilder builder;
  const uint32_t outer = builder.AddNode(builder.AddString("outer"));
  const uint32_t unnamed = builder.AddNode(0, outer, builder.AddString("a.cc"), 5);
  builder.AddCode(0x1000, 0x2000, 0, outer, SymbolTableBuilder::Layer::kDebugInfo);
  builder.AddCode(0x1100, 0x1200, 1, unnamed, SymbolTableBuilder::Layer::kDebugInfo);
  symbols_[id_] = builder.Build(id_, SymbolSource::kDwarf);
  Begin({"name=cpu_total,by=function"});
  const store::ProcessNo process = AddProcess("a");
  AddSamples(process, 50, leaf_);
  const store::FrameRow frame{.kind = FrameKind::kNative, .executable = executable_, .address = 0x1010};
  AddSamples(process, 100, AddNode(0, store::NodeNo{0}, frame));
  loop_->RunOnce();
  EXPECT_THAT(Text(), HasSubstr("cpu_total{function=\"[unknown]\"} 1\n"));
  EXPECT_THAT(Text(), HasSubstr("cpu_total{function=\"outer\"} 2\n"));
}

TEST_F(ProfileMetricsLoopTest, LooksUpNoSymbolsThatNoMetricNeeds) {
  Begin({"name=cpu_total,by=executable,library"});
  AddSamples(AddProcess("a"), 50, leaf_);
  loop_->RunOnce();
  EXPECT_THAT(Text(), HasSubstr("library=\"libwork.so.1\"} 1\n"));
  EXPECT_EQ(lookups_, 0);
}

TEST_F(ProfileMetricsLoopTest, StopsSoonWhileItLooksUpSymbols) {
  Begin({"name=cpu_total,by=function"});
  const store::ProcessNo process = AddProcess("a");
  for (char i = 0; i < 100; ++i) {
    const auto id = *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::string(20, i));
    const store::ExecutableNo file = store_.shards[0].AddExecutable(id, "/usr/bin/a");
    const store::FrameRow frame{.kind = FrameKind::kNative, .executable = file, .address = 0x10};
    AddSamples(process, 1, AddNode(0, store::NodeNo{0}, frame));
  }
  on_lookup_ = [this] { loop_->Cancel(); };
  loop_->RunOnce();
  EXPECT_EQ(lookups_, 1);
  EXPECT_EQ(Counted("samples_total", "cpu_total"), 0u);
}

TEST_F(ProfileMetricsLoopTest, CountsNothingOnceItIsCancelled) {
  // The last frame cancels, so no other frame notices.
  Begin({"name=cpu_total,by=function"});
  AddSamples(AddProcess("a"), 1, leaf_);
  on_lookup_ = [this] { loop_->Cancel(); };
  loop_->RunOnce();
  EXPECT_EQ(lookups_, 1);
  EXPECT_EQ(Counted("samples_total", "cpu_total"), 0u);
}

}  // namespace
}  // namespace tributary
