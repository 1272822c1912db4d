"""Instructions about the shop."""

from __future__ import annotations

from .. import words
from ..population import Tables
from .row_template import (
    EASY,
    HARD,
    MEDIUM,
    Ask,
    Plan,
    Refused,
    Scene,
    call,
    check_balance,
    find_row_id,
    template,
)

FUNDS = ("insufficient_funds",)


def _wish_product(a: Ask) -> Plan:
    yield call("shop_wish", product=a.product)


@template(
    EASY, _wish_product, "Put product {product} on my wish list.",
    "I wish for product {product}; note it in the shop.", "Add product {product} to the wishes.",
)  # fmt: skip
def wish_product(s: Scene) -> Tables:
    """The product is on the wish list."""
    product = s.row("products", wished=False)
    s.say(product=product)
    goal = s.goal()
    goal["products"][product]["wished"] = True
    return goal


def _cancel_order(a: Ask) -> Plan:
    yield call("shop_cancel_order", order=a.order)


@template(
    EASY, _cancel_order, "Cancel order {order}.",
    "I do not want order {order} any more; cancel it.", "Stop order {order}.", test=True,
)  # fmt: skip
def cancel_order(s: Scene) -> Tables:
    """The order is cancelled; money and stock are back."""
    order = s.row("orders", status="processing")
    s.say(order=order)
    goal = s.goal()
    row = goal["orders"][order]
    row["status"] = "cancelled"
    goal["account"][1]["balance"] += row["total"]
    goal["products"][row["product"]]["stock"] += row["quantity"]
    return goal


def _tell_price(a: Ask) -> Plan:
    (row,) = yield call("shop_get_product", product=a.product)
    return row["price"]


@template(
    EASY, _tell_price, "How many euros does product {product} cost?",
    "Tell me the price of product {product} in euros.",
    "What is the price of product {product}, in euros?",
)  # fmt: skip
def tell_price(s: Scene) -> tuple[Tables, int]:
    """Nothing changes; the answer is the price."""
    (product,) = s.pick("products")
    s.say(product=product)
    return s.goal(), s.world["products"][product]["price"]


def _buy(a: Ask) -> Plan:
    (row,) = yield call("shop_find", name=a.product)
    if row["stock"] < a.quantity:
        raise Refused("out_of_stock")
    yield from check_balance(a.quantity * row["price"])
    yield call("shop_put_in_cart", product=row["product"], quantity=a.quantity)
    yield call("shop_order")


@template(
    MEDIUM, _buy, "Order {quantity} of the product {product}.",
    "Buy {quantity} pieces of {product} in the shop.",
    "I need {quantity} times {product}; order.", reasons=(*FUNDS, "out_of_stock"),
)  # fmt: skip
def buy_product(s: Scene) -> Tables:
    """There is one more order, in processing, paid from the balance; the cart is empty."""
    product = s.row("products")
    quantity = s.dice.between(1, 3)
    s.world["cart"] = {}
    row = s.world["products"][product]
    total = quantity * row["price"]
    if s.reason == "out_of_stock":
        row["stock"] = s.dice.below(quantity)
    if s.reason == "insufficient_funds":
        s.world["account"][1]["balance"] = s.dice.below(total)
    s.say(product=row["name"], quantity=quantity)
    goal = s.goal()
    goal["products"][product]["stock"] -= quantity
    goal["account"][1]["balance"] -= total
    goal["orders"][1000] = {
        "product": product,
        "quantity": quantity,
        "total": total,
        "status": "processing",
    }
    return goal


def _return_order(a: Ask) -> Plan:
    product = yield from find_row_id("product", "shop_find", name=a.product)
    rows = yield call("shop_orders_of", product=product)
    (order,) = [row["order"] for row in rows if row["status"] == "delivered"]
    yield call("shop_return_order", order=order)


@template(
    MEDIUM, _return_order, "Return the {product} that was delivered.",
    "The {product} does not fit; send the order back.",
    "I want my money back for the delivered {product}.", test=True,
)  # fmt: skip
def return_order(s: Scene) -> Tables:
    """The delivered order of the product is returned; money and stock are back."""
    order = s.row("orders", status="delivered")
    product = s.world["orders"][order]["product"]
    s.say(product=s.world["products"][product]["name"])
    goal = s.goal()
    row = goal["orders"][order]
    row["status"] = "returned"
    goal["account"][1]["balance"] += row["total"]
    goal["products"][product]["stock"] += row["quantity"]
    return goal


def _take_from_cart(a: Ask) -> Plan:
    product = yield from find_row_id("product", "shop_find", name=a.product)
    yield call("shop_take_from_cart", product=product)


@template(
    MEDIUM, _take_from_cart, "Take the {product} out of the cart.",
    "I do not want the {product} in my cart.", "Remove {product} from the cart.",
)  # fmt: skip
def take_from_cart(s: Scene) -> Tables:
    """The product is not in the cart; the rest is."""
    product = s.row("cart")
    s.say(product=s.world["products"][product]["name"])
    goal = s.goal()
    del goal["cart"][product]
    return goal


def _buy_cheapest(a: Ask) -> Plan:
    rows = yield call("shop_of_category", category=a.category)
    row = min(rows, key=lambda row: row["price"])
    if row["stock"] < a.quantity:
        raise Refused("out_of_stock")
    yield from check_balance(a.quantity * row["price"])
    yield call("shop_put_in_cart", product=row["product"], quantity=a.quantity)
    yield call("shop_order")


@template(
    HARD, _buy_cheapest, "Order {quantity} of the cheapest product in {category}.",
    "Of all {category} products, buy {quantity} times the one with the lowest price.",
    "I need {quantity} pieces from {category}, as cheap as possible, all of one product; order.",
    reasons=("insufficient_funds", "out_of_stock"),
)  # fmt: skip
def buy_cheapest(s: Scene) -> Tables:
    """There is one more order of the cheapest product of the category.

    It is paid from the balance, and the cart is empty.
    """
    category = s.dice.choice(words.CATEGORIES)
    quantity = s.dice.between(2, 3)
    cheapest, *competitors = s.pick("products", 3)
    products = s.world["products"]
    for number, row in products.items():
        if number in (cheapest, *competitors):
            row["category"] = category
        if row["category"] == category:
            row["price"] = max(row["price"], 6)
    products[cheapest]["price"] = 5
    s.world["cart"] = {}
    if s.reason == "out_of_stock":
        products[cheapest]["stock"] = s.dice.below(quantity)
    if s.reason == "insufficient_funds":
        s.world["account"][1]["balance"] = s.dice.below(5 * quantity)
    s.say(category=category, quantity=quantity)
    goal = s.goal()
    goal["products"][cheapest]["stock"] -= quantity
    goal["account"][1]["balance"] -= 5 * quantity
    goal["orders"][1000] = {
        "product": cheapest,
        "quantity": quantity,
        "total": 5 * quantity,
        "status": "processing",
    }
    return goal


def _buy_wishes(a: Ask) -> Plan:
    rows = yield call("shop_wishes")
    yield from check_balance(sum(row["price"] for row in rows))
    for row in rows:
        yield call("shop_put_in_cart", product=row["product"], quantity=1)
    yield call("shop_order")
    for row in rows:
        yield call("shop_unwish", product=row["product"])


@template(
    HARD, _buy_wishes,
    (
        "Order one of each product on my wish list, if the balance covers all, and take them off "
        "the list."
    ),
    (
        "Buy all my wishes, one of each; then the wish list is empty. Buy none if the money is too "
        "little."
    ),
    "One of everything that I wish for, please; order it and clear the wish list.",
    reasons=("insufficient_funds",), test=True,
)  # fmt: skip
def buy_wishes(s: Scene) -> Tables:
    """There is one more order of each wish, paid from the balance; cart and wish list are empty."""
    wishes = s.pick("products", s.dice.between(2, 3))
    for number, row in s.world["products"].items():
        row["wished"] = number in wishes
    s.world["cart"] = {}
    products = s.world["products"]
    total = sum(products[number]["price"] for number in wishes)
    if s.reason == "insufficient_funds":
        s.world["account"][1]["balance"] = total - s.dice.between(1, 5)
    goal = s.goal()
    goal["account"][1]["balance"] -= total
    for number in wishes:
        goal["products"][number].update(wished=False, stock=products[number]["stock"] - 1)
        goal["orders"][1000 + number] = {
            "product": number, "quantity": 1, "total": products[number]["price"],
            "status": "processing",
        }  # fmt: skip
    return goal


TEMPLATES = (
    wish_product, cancel_order, tell_price, buy_product, return_order, take_from_cart, buy_cheapest,
    buy_wishes,
)  # fmt: skip
