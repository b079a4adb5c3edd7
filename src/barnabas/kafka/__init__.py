"""The border with Kafka: settings for both clients, the admin calls, and its errors in our words."""
