/* Intrusive doubly linked list.  A node is in at most one list; an unlinked node is zeroed, and
 * list_linked() tells.  Not thread-safe. */
#pragma once

#include "engine/base/check.h"

struct list_node {
    struct list_node *next, *prev;
};

struct list {
    struct list_node head;
};

static inline void
list_init(struct list *list)
{
    list->head.next = list->head.prev = &list->head;
}

static inline bool
list_empty(const struct list *list)
{
    return list->head.next == &list->head;
}

static inline bool
list_linked(const struct list_node *node)
{
    return node->next != NULL;
}

static inline void
list_insert_between_(struct list_node *node, struct list_node *prev, struct list_node *next)
{
    check(!list_linked(node));
    node->prev = prev;
    node->next = next;
    prev->next = node;
    next->prev = node;
}

static inline void
list_push_back(struct list *list, struct list_node *node)
{
    list_insert_between_(node, list->head.prev, &list->head);
}

static inline void
list_push_front(struct list *list, struct list_node *node)
{
    list_insert_between_(node, &list->head, list->head.next);
}

static inline void
list_insert_before(struct list_node *at, struct list_node *node)
{
    list_insert_between_(node, at->prev, at);
}

static inline void
list_remove(struct list_node *node)
{
    check(list_linked(node));
    node->prev->next = node->next;
    node->next->prev = node->prev;
    node->next = node->prev = NULL;
}

static inline struct list_node *
list_first(struct list *list)
{
    return list_empty(list) ? NULL : list->head.next;
}

static inline struct list_node *
list_pop_front(struct list *list)
{
    struct list_node *node = list_first(list);
    if (node != NULL)
        list_remove(node);
    return node;
}

/* Move every node of `from` to the end of `to`. */
static inline void
list_splice_back(struct list *to, struct list *from)
{
    if (list_empty(from))
        return;
    struct list_node *first = from->head.next, *last = from->head.prev;
    first->prev = to->head.prev;
    to->head.prev->next = first;
    last->next = &to->head;
    to->head.prev = last;
    list_init(from);
}

#define list_for_each(node, list)                                                                  \
    for (struct list_node *node = (list)->head.next; node != &(list)->head; node = node->next)

/* The current node may be removed (and only it). */
#define list_for_each_safe(node, list)                                                             \
    for (struct list_node *node = (list)->head.next, *node##_next_ = node->next;                   \
         node != &(list)->head; node = node##_next_, node##_next_ = node->next)
