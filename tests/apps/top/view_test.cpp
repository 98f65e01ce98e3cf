#include "apps/top/view.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::apps {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(KeyReaderTest, LettersAndSequences) {
  KeyReader keys;
  EXPECT_THAT(keys.read("qx?\t"), ElementsAre(Key::quit, Key::help, Key::next_tab));
  EXPECT_THAT(keys.read("\x1b[A\x1bOB\x1b[5~\x1b[Z"), ElementsAre(Key::up, Key::down, Key::page_up, Key::previous_tab));
  EXPECT_THAT(keys.read("\x03\x1a"
                        "5"),
              ElementsAre(Key::quit, Key::suspend, Key::fifth_tab));
}

TEST(KeyReaderTest, ASequenceMayComeInPieces) {
  KeyReader keys;
  EXPECT_THAT(keys.read("\x1b"), IsEmpty());
  EXPECT_TRUE(keys.waits());
  EXPECT_THAT(keys.read("["), IsEmpty());
  EXPECT_THAT(keys.read("B"), ElementsAre(Key::down));
  EXPECT_FALSE(keys.waits());
}

TEST(KeyReaderTest, AnEscapeAloneIsAKeyAfterAPause) {
  KeyReader keys;
  EXPECT_THAT(keys.read("\x1b"), IsEmpty());
  EXPECT_THAT(keys.read("", true), ElementsAre(Key::escape));
  EXPECT_THAT(keys.read("\x1bq"), ElementsAre(Key::escape, Key::quit));
}

TEST(KeyReaderTest, UnknownSequencesMeanNothingAndHideNoKey) {
  KeyReader keys;
  EXPECT_THAT(keys.read("\x1b[200~q\x1b[1;5Aq"), ElementsAre(Key::quit, Key::quit));
  EXPECT_THAT(keys.read("\x1b[" + std::string(100, '1')), IsEmpty());
  EXPECT_THAT(keys.read("q"), ElementsAre(Key::quit)) << "a sequence that never ends is given up";
}

TEST(ViewTest, KeysChangeWhatIsShown) {
  View view;
  view.press(Key::next_tab);
  EXPECT_EQ(view.tab, Tab::workers);
  view.press(Key::previous_tab);
  view.press(Key::previous_tab);
  EXPECT_EQ(view.tab, Tab::members);
  view.press(Key::third_tab);
  EXPECT_EQ(view.tab, Tab::waits);
  view.press(Key::help);
  EXPECT_TRUE(view.help);
  view.press(Key::escape);
  EXPECT_FALSE(view.help);
  view.press(Key::sort);
  EXPECT_EQ(view.sort, Sort::rate);
  view.press(Key::reverse);
  EXPECT_TRUE(view.reversed);
}

TEST(ViewTest, ScrollingEndsAtTheTop) {
  View view;
  view.page = 10;
  view.press(Key::page_down);
  view.press(Key::down);
  EXPECT_EQ(view.scroll, 11U);
  view.press(Key::page_up);
  view.press(Key::page_up);
  view.press(Key::up);
  EXPECT_EQ(view.scroll, 0U);
  view.press(Key::end);
  EXPECT_GT(view.scroll, 1'000'000U) << "screen() brings it to the last page";
}

}  // namespace
}  // namespace troupe::apps
