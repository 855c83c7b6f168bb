#include "engine/base/list.h"

#include "tests/unit/dies.h"
#include "tests/unit/suite.h"

struct item {
    int number;
    struct list_node node;
};

static struct item items[6];
static struct list list;

static void
start(void)
{
    list_init(&list);
    for (int i = 0; i < 6; i++)
        items[i] = (struct item){.number = i};
}

/* The numbers in the list as one decimal number. */
static int
digits(struct list *of)
{
    int value = 0;
    list_for_each (node, of)
        value = value * 10 + CONTAINER_OF(node, struct item, node)->number;
    return value;
}

static void
push_and_insert_keep_the_order(void)
{
    start();
    CU_ASSERT(list_empty(&list));
    CU_ASSERT_PTR_NULL(list_first(&list));
    list_push_back(&list, &items[2].node);
    list_push_back(&list, &items[4].node);
    list_push_front(&list, &items[1].node);
    list_insert_before(&items[4].node, &items[3].node);
    CU_ASSERT_EQUAL(digits(&list), 1234);
    CU_ASSERT_PTR_EQUAL(list_first(&list), &items[1].node);
    CU_ASSERT(!list_empty(&list));
}

static void
a_removed_node_is_unlinked_and_may_come_back(void)
{
    start();
    for (int i = 1; i < 4; i++)
        list_push_back(&list, &items[i].node);
    CU_ASSERT(list_linked(&items[2].node));
    list_remove(&items[2].node);
    CU_ASSERT(!list_linked(&items[2].node));
    CU_ASSERT_EQUAL(digits(&list), 13);
    list_push_back(&list, &items[2].node);
    CU_ASSERT_EQUAL(digits(&list), 132);
}

static void
pop_takes_from_the_front_until_there_is_nothing(void)
{
    start();
    list_push_back(&list, &items[1].node);
    list_push_back(&list, &items[2].node);
    CU_ASSERT_PTR_EQUAL(list_pop_front(&list), &items[1].node);
    CU_ASSERT_PTR_EQUAL(list_pop_front(&list), &items[2].node);
    CU_ASSERT_PTR_NULL(list_pop_front(&list));
    CU_ASSERT(list_empty(&list));
}

static void
splice_moves_all_behind_what_is_there(void)
{
    struct list from;
    start();
    list_init(&from);
    list_push_back(&list, &items[1].node);
    list_splice_back(&list, &from); /* nothing to move */
    CU_ASSERT_EQUAL(digits(&list), 1);
    list_push_back(&from, &items[2].node);
    list_push_back(&from, &items[3].node);
    list_splice_back(&list, &from);
    CU_ASSERT_EQUAL(digits(&list), 123);
    CU_ASSERT(list_empty(&from));
    list_push_back(&list, &items[4].node); /* the ends were joined right */
    list_remove(&items[2].node);
    CU_ASSERT_EQUAL(digits(&list), 134);
}

static void
the_safe_walk_survives_removal_of_the_current_node(void)
{
    start();
    for (int i = 1; i < 6; i++)
        list_push_back(&list, &items[i].node);
    list_for_each_safe (node, &list)
        if (CONTAINER_OF(node, struct item, node)->number % 2 == 0)
            list_remove(node);
    CU_ASSERT_EQUAL(digits(&list), 135);
}

static void
push_twice(void)
{
    list_push_back(&list, &items[1].node);
    list_push_back(&list, &items[1].node);
}

static void
remove_unlinked(void)
{
    list_remove(&items[1].node);
}

static void
a_node_is_in_at_most_one_list(void)
{
    char text[256];
    start();
    CU_ASSERT(dies(push_twice, text, sizeof(text)));
    CU_ASSERT(dies(remove_unlinked, text, sizeof(text)));
}

SUITE_MAIN("list", T(push_and_insert_keep_the_order),
           T(a_removed_node_is_unlinked_and_may_come_back),
           T(pop_takes_from_the_front_until_there_is_nothing),
           T(splice_moves_all_behind_what_is_there),
           T(the_safe_walk_survives_removal_of_the_current_node), T(a_node_is_in_at_most_one_list))
